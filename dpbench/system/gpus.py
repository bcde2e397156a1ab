"""GPUs: clocks, power, faults, and who else is on them. NVML alone is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpbench import nvml, procfs
from dpbench.state import throttles
from dpbench.system.finding import Finding, disturbs, note, ok


def findings(versions: Mapping[str, Any], root: Path) -> Iterator[Finding]:
    """Of every NVIDIA GPU, and whether torch can use them."""
    with nvml.opened() as library:
        cards = [] if library is None else nvml.handles(library)
        if library is None or not cards:
            yield note("GPU", "no NVIDIA GPU is told of")
            return
        yield driver(library, versions)
        for i, card in enumerate(cards):
            for finding in _of_card(library, card, i, root):
                yield Finding(f"GPU {i}, {finding.name}", finding.verdict, finding.text, finding.fix)


def _of_card(library: Any, card: Any, index: int, root: Path) -> Iterator[Finding]:
    if nvml.in_parts(library, card):
        yield note("MIG", "divided: its parts share clocks and power", f"sudo nvidia-smi -i {index} -mig 0")
    yield persistence(library, card, index)
    yield others(library, card, root)
    yield clocks(library, card, index)
    yield power(library, card, index)
    yield faults(library, card, index)
    yield throttling(library, card)


def driver(library: Any, versions: Mapping[str, Any]) -> Finding:
    """Whether the driver is new enough for the CUDA that torch was built with."""
    built = versions.get("cuda")
    if built is None:
        return disturbs(
            "CUDA", "this torch was built without it: GPUs are not used", "install a torch that is built for CUDA"
        )
    known = nvml.ask(library, "nvmlSystemGetCudaDriverVersion_v2")
    if known is None:
        return note("CUDA", f"torch {built}; that of the driver is not told")
    newest = known // 1000, known % 1000 // 10
    text = f"torch {built}, driver {versions.get('driver')} up to {newest[0]}.{newest[1]}"
    major, minor = (int(v) for v in [*str(built).split("."), "0"][:2])
    if newest >= (major, minor):
        return ok("CUDA", text)
    if newest[0] == major:
        # Source: CUDA Compatibility, minor version compatibility.
        return note("CUDA", f"{text}: runs, but kernels that have to be compiled may not", "a newer driver")
    return disturbs("CUDA", f"{text}: too old", f"a newer driver, or a torch built for CUDA {newest[0]}.{newest[1]}")


def persistence(library: Any, card: Any, index: int) -> Finding:
    """Whether the driver keeps the card ready between processes."""
    found = nvml.ask(library, "nvmlDeviceGetPersistenceMode", card)
    if found is None:
        return note("persistence", "not told")
    if found:
        return ok("persistence", "on")
    return disturbs(
        "persistence",
        "off: each fresh process may have to wake the card, and settings are lost in between",
        f"sudo nvidia-smi -i {index} -pm 1",
    )


def others(library: Any, card: Any, root: Path) -> Finding:
    """Other processes that compute on it."""
    pids = nvml.processes(library, card)
    if pids is None:
        return note("processes", "not told")
    if not procfs.knows_all_processes(root):
        return note("processes", "not told: in a container, whose process ids are not the driver's")
    foreign = [pid for pid in pids if pid != os.getpid()]
    if not foreign:
        return ok("processes", "none")
    tasks = {pid: procfs.task(pid, root) for pid in foreign}
    who = ", ".join(f"{t.name if t else 'process'} ({pid})" for pid, t in tasks.items())
    return disturbs("processes", f"{len(foreign)} compute on it", f"end or wait for: {who}")


def clocks(library: Any, card: Any, index: int) -> Finding:
    """Whether they are held at one value. Those of ``nvidia-smi -lgc`` NVML does not tell."""
    most = nvml.ask(library, "nvmlDeviceGetMaxClockInfo", card, library.NVML_CLOCK_SM)
    chosen = nvml.ask(library, "nvmlDeviceGetApplicationsClock", card, library.NVML_CLOCK_SM)
    default = nvml.ask(library, "nvmlDeviceGetDefaultApplicationsClock", card, library.NVML_CLOCK_SM)
    if chosen is not None and chosen != default:
        return ok("clocks", f"applications are to run at {chosen} MHz")
    text = "not told" if most is None else f"up to {most} MHz"
    return note(
        "clocks",
        f"{text}; unless they are locked, which NVML does not tell, they follow heat and power",
        f"sudo nvidia-smi -i {index} -lgc MHZ (one that it holds under load; undo: -rgc)",
    )


def power(library: Any, card: Any, index: int) -> Finding:
    """The limit against the one that the card came with."""
    limit = nvml.ask(library, "nvmlDeviceGetPowerManagementLimit", card)
    default = nvml.ask(library, "nvmlDeviceGetPowerManagementDefaultLimit", card)
    if limit is None or default is None:
        return note("power", "not told")
    text = f"limited to {limit / 1e3:g} W, by default {default / 1e3:g} W"
    if limit >= default:
        return ok("power", text)
    return disturbs("power", text, f"sudo nvidia-smi -i {index} -pl {default / 1e3:g}")


def faults(library: Any, card: Any, index: int) -> Finding:
    """Memory that was found faulty, and takes a reset to be put out of use."""
    rows = nvml.ask(library, "nvmlDeviceGetRemappedRows", card)
    pending = nvml.ask(library, "nvmlDeviceGetRetiredPagesPendingStatus", card) if rows is None else rows[2]
    if rows is not None and rows[3]:
        return disturbs("memory faults", "a row could not be replaced", "another card: this one is to be exchanged")
    if pending:
        return disturbs(
            "memory faults",
            "some are put out of use at the next reset",
            f"sudo nvidia-smi -i {index} --gpu-reset",
        )
    return note("memory faults", "not told") if pending is None else ok("memory faults", "none pending")


def throttling(library: Any, card: Any) -> Finding:
    """What holds its clocks down now."""
    found = nvml.reasons(library, card)
    if found is None:
        return note("throttling", "not told")
    if names := throttles([found, found]):
        return disturbs("throttling", ", ".join(names), "cooler air, a stronger supply, or wait")
    if found & nvml.POWER_CAP:
        return note("throttling", "its clocks meet the power limit: heavier kernels run at lower ones")
    return ok("throttling", "none now")
