"""How the figures were made, in paragraphs that can stand in a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpbench.document.citations import credit
from dpbench.document.sources import Material, machine, sources
from dpbench.document.works import EFRON, HESTERBERG
from dpbench.results import Results
from dpbench.rows import Row
from dpbench.stats import MIN_ROUNDS

LIBRARIES = {"torch": "PyTorch", "python": "Python", "cuda": "CUDA", "cudnn": "cuDNN", "driver": "driver"}
MODELS = {"transformers": "Transformers", "timm": "timm", "torchvision": "torchvision", "peft": "PEFT"}
PEERS = {"opacus": "lib:opacus", "fastDP": "lib:fastdp"}
SETTING = {"Day": ", ", "Software": ", ", "Precision": ", ", "Device": ", ", "CPU threads": ", ", "Steps": "; "}
"""What a setting tells of, and what stands between several."""


def paragraphs(material: Material) -> Iterator[str]:
    """One for each machine, then whose gradients they are, how they were checked, timed and weighed."""
    yield from _settings(material)
    rows = list(material.rows)
    if credited := credit(row.implementation for row in rows):
        yield credited
    if checked := _checked(rows):
        yield checked
    if timed := _timed(material, rows):
        yield timed
    if any(row.memory is not None for row in rows):
        yield _memory(rows)
    if any(row.batch_is_max for row in rows):
        yield (
            "Where the batch is given as max, each implementation ran at the largest physical batch "
            "that fits, its own, and throughputs are compared rather than times of steps."
        )
    if any(row.record.traced is not None for row in rows):
        yield (
            "FLOPs and traced peaks were counted in a trace of the implementations' own code on "
            "tensors of shapes without "
            "memory, or extrapolated from small batches of real ones where a model cannot be traced so."
        )


def _settings(material: Material) -> Iterator[str]:
    alike: dict[str, dict[str, dict[str, list[str]]]] = {}
    for source, rows in material.by_source.items():
        environment = material.files[source].header.environment
        alike.setdefault(_taken(environment), {})[source] = _setting(material.files[source], rows)
    for taken, settings in alike.items():
        of = f"{sources(settings)}: " if len(alike) > 1 else ""
        told = {what: _joined({s: own[what] for s, own in settings.items()}, sep) for what, sep in SETTING.items()}
        days = told.pop("Day")
        yield " ".join([f"{of}{taken}, {days}.", *(f"{what}: {values}." for what, values in told.items() if values)])


def _taken(environment: Mapping[str, Any]) -> str:
    tool = (environment.get("dpbench") or {}).get("version")
    where = machine(environment)
    on = where if where != "unknown" else "a machine that is not recorded"
    return f"All measurements were taken with {f'dpbench {tool}' if tool else 'dpbench'} on {on}"


def _setting(results: Results, rows: Sequence[Row]) -> dict[str, list[str]]:
    environment = results.header.environment
    return {
        "Day": [results.header.started[:10]],
        "Software": _versions(environment.get("versions") or {}, rows),
        "Precision": _values(rows, "precision"),
        "Device": _values(rows, "device"),
        "CPU threads": _threads(rows, environment),
        "Steps": _steps(rows),
    }


def _joined(values: Mapping[str, Sequence[str]], sep: str) -> str:
    """Each value once, and whose it is where it is not everybody's."""
    owners: dict[str, list[str]] = {}
    for source, own in values.items():
        for value in own:
            owners.setdefault(value, []).append(source)
    return sep.join(value if len(own) == len(values) else f"{value} [{sources(own)}]" for value, own in owners.items())


def _versions(versions: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    families = {row.workload.model.partition(":")[0] for row in rows}
    peers = {key for key, start in PEERS.items() if any(row.implementation.startswith(start) for row in rows)}
    on_gpu = any(row.workload.device.startswith("cuda") for row in rows)
    wanted = {k: v for k, v in LIBRARIES.items() if on_gpu or k in ("torch", "python")}
    wanted |= {k: v for k, v in MODELS.items() if k in families} | {k: k for k in sorted(peers)}
    if any(row.workload.trainable.startswith("lora") for row in rows):
        wanted["peft"] = MODELS["peft"]
    return [f"{name} {versions[key]}" for key, name in wanted.items() if versions.get(key)]


def _values(rows: Sequence[Row], axis: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(row.workload, axis)) for row in rows))


def _threads(rows: Sequence[Row], environment: Mapping[str, Any]) -> list[str]:
    default = (environment.get("flags") or {}).get("threads")
    found = dict.fromkeys(row.workload.threads or default for row in rows if row.workload.device == "cpu")
    return [str(n) for n in found if n]


def _steps(rows: Sequence[Row]) -> list[str]:
    kinds = {
        "gradient": "forward, clipping and the sum of the clipped gradients, without noise and without an optimizer",
        "train": "forward, clipping, noise, scaling and the optimizer",
    }
    found = dict.fromkeys(row.workload.step for row in rows)
    return [f"{step} ({kinds[step]})" if step in kinds else step for step in found]


def _checked(rows: Sequence[Row]) -> str:
    parities = [row.record.parity for row in rows if row.record.parity is not None]
    if not parities:
        return ""
    exact = sorted({p.tolerance for p in parities if p.precision == "float64"})
    others = sorted({p.precision for p in parities if p.precision != "float64"})
    limits = " or ".join(f"{t:.0e}" for t in exact)
    text = "Before anything was timed, each gradient was compared with that of an explicit loop over the examples"
    text += f", in float64, where the largest relative error may be {limits}" if exact else ""
    if others:
        text += (
            f"{'; some' if exact else ''} in the precision of the run ({', '.join(others)}), within a "
            "multiple of the loop's own rounding"
        )
    return f"{text}. Implementations that fail this have no figures."


def _timed(material: Material, rows: Sequence[Row]) -> str:
    counts = sorted({row.rounds for row in rows if row.rounds})
    if not counts:
        return ""
    rounds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    budgets = {(f.header.environment.get("settings") or {}).get("budget_s") for f in material.files.values()}
    known = sorted(b for b in budgets if isinstance(b, int | float))
    each = f", for {' or '.join(f'{b:g}' for b in known)} s each" if known else ""
    interval = (
        f"Intervals are 95 % percentile bootstrap intervals over rounds ({EFRON.short}), with expanded "
        f"percentiles for geometric means ({HESTERBERG.short}); none is given below {MIN_ROUNDS} rounds."
        if counts[-1] >= MIN_ROUNDS
        else f"With fewer than {MIN_ROUNDS} rounds no interval is given."
    )
    together = (
        "In each, every implementation of a workload was warmed up until its steps got no faster or its time for that "
        f"was up, and all were then timed interleaved, in an order drawn anew{each}. "
    )
    if any(row.batch_is_max for row in rows):
        together += "Where the batch is max, each had a process of its own in every round. "
    if any(f.header.run for f in material.files.values()):
        together += "Sides of one run were timed in turns, in processes that were alive at once. "
    return (
        f"Timings were taken in {rounds} {'round' if rounds == '1' else 'rounds'} of fresh processes. {together}"
        "The time of a step is the median over rounds of the rounds' medians; a ratio is the geometric mean of the "
        f"rounds' ratios, of what ran in the same round. {interval}"
    )


def _memory(rows: Sequence[Row]) -> str:
    kinds = {row.workload.device.partition(":")[0] for row in rows if row.memory is not None}
    how = []
    if "cpu" in kinds:
        how.append("on the CPU the most bytes of live tensors at once")
    if "cuda" in kinds:
        how.append("on CUDA the most bytes that torch's allocator had handed out")
    return (
        f"Memory is the peak of one step above parameters, buffers and batch{': ' if how else ''}{', '.join(how)}; "
        "1 GB is 1e9 bytes."
    )
