"""Predictions held against published figures, and against exact values; nothing is fitted to them.

Run: ``make published``. It prints what it finds and keeps it in ``results/reference/published.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from dpbench.cards import card
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.maxbatch import largest, worth_running
from dpbench.complexity.roofline import seconds
from dpbench.complexity.survey import MOST, Task, survey, workers
from dpbench.complexity.tracing import trace_of
from dpbench.facts import Facts
from dpbench.published import claims, figures
from dpbench.records import Workload
from dpbench.suite import load
from dpbench.sweep import cells_of

REFERENCE = Path("results/reference")
A100 = card("A100-40GB")


def published(quantity: str, figure: str) -> dict[tuple[str, int | None], list[dict[str, Any]]]:
    """A quantity's values by implementation, of every row of a figure, by model and image size."""
    found: dict[tuple[str, int | None], list[dict[str, Any]]] = {}
    for row in figures()[figure].rows:
        if quantity in row:
            found.setdefault((row["model"], row.get("image")), []).append(row[quantity])
    return found


def flops() -> Iterator[str]:
    """BK over non-private and over GhostClip, at T = 100."""
    yield "## FLOPs at T = 100, B = 2: bk over nonprivate (published 1.03 to 1.05), over ghostclip (published 0.61)"
    for name, over in (("gpt2", 1.05), ("gpt2-medium", 1.04), ("gpt2-large", 1.03)):
        w = Workload(model=f"transformers:{name}", batch=2, seq_len=100, attention="eager")
        task = Faked(w)
        plain, bk, ghost = (trace_of(n, w, task).total for n in ("nonprivate", "bk", "ghostclip"))
        yield f"{name}: {bk / plain:.3f} (expected {over}), {bk / ghost:.3f}"


def leading() -> Iterator[str]:
    """Opacus 8/6 and FastGradClip 10/6 of non-private where there is no other work and T is large; exact at T = 1."""
    yield "## FLOPs over nonprivate without other work: opacus 8/6 = 1.333, fastgradclip 10/6 = 1.667 for large T"
    wide = "synthetic:mlp(width=256,depth=32)"
    conv = "synthetic:cnn(channels=64,depth=8)"
    for label, w in (
        ("convolutions, T = 4096 to 64", Workload(model=conv, batch=2, image_size=64)),
        ("linear layers, T = 1", Workload(model=wide, batch=2)),
    ):
        task = Faked(w)
        total = {n: trace_of(n, w, task).total for n in ("nonprivate", "opacus", "fastgradclip", "bk", "vmap")}
        ratios = {n: total[n] / total["nonprivate"] for n in total if n != "nonprivate"}
        yield f"{label}: " + ", ".join(f"{n} {r:.4f}" for n, r in ratios.items())
    L, pd, p = 32, 256 * 256, 256
    base = L * 6 * pd - 2 * pd
    opacus = base + L * (2 * pd + 2 * (pd + p))
    clip = L * 10 * pd - 4 * pd
    yield f"by hand at T = 1: opacus {opacus / base:.4f}, fastgradclip {clip / base:.4f} (first layers have no 2a)"


def decisions() -> Iterator[str]:
    """The first ghost layer of ResNet18 under 2T^2 < pd, and the sizes of VGG11's first convolution."""
    yield "## The layerwise decision"
    for size, paper in (
        (224, claims()["resnet18_first_ghost_layer_224"]),
        (512, claims()["resnet18_first_ghost_layer_512"]),
    ):
        w = Workload(model="torchvision:resnet18", batch=1, image_size=size, norm="group")
        found = [x for x in layers(Faked(w)) if x.facts.matrix]
        straight = [x for x in found if "downsample" not in x.name]
        places = [1 + [x.facts.ghost_needs_less_space for x in some].index(True) for some in (found, straight)]
        first = found[places[0] - 1].name
        yield (
            f"resnet18 at {size} px: first ghost layer {first}, the {places[0]}th of all, the {places[1]}th without "
            f"downsampling (paper {paper}; torchvision's network, counted from 1)"
        )
    w = Workload(model="torchvision:vgg11", batch=1, image_size=224)
    facts: Facts = layers(Faked(w))[0].facts
    yield f"vgg11, first convolution: 2T^2 = {2 * facts.T**2:.3g}, pd = {facts.p * facts.d} (paper 5.0e9, 1.7e3)"
    w = Workload(model="torchvision:resnet18", batch=32, image_size=224, norm="group")
    task = Faked(w)
    peaks = {n: trace_of(n, w, task).peak / 1e9 for n in ("ghostclip", "mixghostclip", "opacus")}
    gram = 32 * 2 * 112**4 * 4 / 1e9
    yield (
        "resnet18, ImageNet, B = 32, peak in GB: " + ", ".join(f"{n} {v:.3g}" for n, v in peaks.items())
        + f" (paper: ghost norms over 40, Opacus 2.5). The two Grams of the first layer alone are {gram:.3g} GB at "
        "once; ours are formed block by block"
    )  # fmt: skip


def batches() -> Iterator[str]:
    """Largest batches, as ratios to non-private."""
    yield "## Largest batch on A100-40GB, train step with AdamW: ours (published); error of the ratio to nonprivate"
    values = published("max_batch", "bk-gpt2-e2e") | published("max_batch", "bk-roberta-glue")
    cells = cells_of(load("paper-maxbatch"))
    for attention in ("eager", "sdpa"):
        errors = {}
        for model in dict.fromkeys(c.workload.model for c in cells):
            printed = values[model, None][0]
            mine = [c for c in cells if c.workload.model == model and c.workload.attention == attention]
            found = {c.implementation: largest(c.implementation, c.workload, A100.capacity).batch for c in mine}
            ratios = {n: found[n] / found["nonprivate"] / (printed[n] / printed["nonprivate"]) - 1 for n in found}
            errors |= {(model, n): r for n, r in ratios.items() if n != "nonprivate"}
            yield f"{attention} {model}: " + ", ".join(
                f"{n} {found[n]} ({printed[n]})" + (f" {ratios[n]:+.1%}" if n != "nonprivate" else "") for n in found
            )
        sizes = sorted(map(abs, errors.values()))
        yield (
            f"{attention}: median {median(sizes):.1%}, worst {sizes[-1]:.1%} (asked 15 %, 35 %); bk alone: "
            + ", ".join(f"{e:+.1%}" for (_, n), e in errors.items() if n == "bk")
        )


def pairs() -> Iterator[str]:
    """Relative speed at the batch sizes that are printed, by the roofline."""
    yield "## Speed over nonprivate on A100-40GB by the roofline, tf32: ours (published), at the printed batch"
    values = published("throughput", "bk-gpt2-e2e") | published("throughput", "bk-roberta-glue")
    errors: list[float] = []
    for workload in dict.fromkeys(c.workload for c in cells_of(load("paper-text"))):
        printed = values[workload.model, None]
        task = Faked(workload)
        names = [n for n in printed[0] if printed[0][n] != "oom"]
        times = {n: seconds(trace_of(n, workload, task), A100, workload.precision) for n in names}
        said = [f"nonprivate {workload.physical / times['nonprivate'].expected:.0f}/s ({printed[0]['nonprivate']})"]
        for n in names[1:]:
            ours = times["nonprivate"].expected / times[n].expected
            each = [ours / (row[n] / row["nonprivate"]) - 1 for row in printed]
            errors += each
            said.append(f"{n} {ours:.3f} (" + ", ".join(f"{r[n] / r['nonprivate']:.3f}" for r in printed) + ")"
                        f" {median(each):+.1%}")  # fmt: skip
        yield f"{workload.label()}: " + ", ".join(said)
    sizes = sorted(map(abs, errors))
    yield f"{len(sizes)} pairs: median {median(sizes):.1%}, worst {sizes[-1]:.1%} (asked 8 %, 15 %)"


def vision() -> Iterator[str]:
    """Throughput of each at its own largest batch; no bar."""
    yield "## VGG11 and BEiT-large: examples/s at each one's largest batch by the roofline, over nonprivate (published)"
    values = published("throughput", "bk-vision")
    cells = cells_of(load("paper-vision"))
    found: dict[Workload, dict[str, tuple[int, float]]] = {}
    tasks = [Task(c.implementation, replace(c.workload, batch=1), (c.implementation,), A100.capacity) for c in cells]
    with workers() as pool:
        for one in survey(tasks, pool):
            print(f"  {one.implementation} {one.task.workload.label()} {one.reason}", file=sys.stderr)
            if one.line is None:
                continue
            workload, name = one.task.workload, one.implementation
            batch = one.line.largest(A100.capacity, worth_running(name, MOST))
            rate = batch / seconds(one.line.at(batch), A100, workload.precision).expected if batch else 0.0
            found.setdefault(workload, {})[name] = batch, rate
    errors = []
    for workload in dict.fromkeys(replace(c.workload, batch=1) for c in cells):
        (printed,) = values[workload.model, workload.image_size]
        base = found[workload]["nonprivate"][1]
        said = []
        for n, (batch, rate) in sorted(found[workload].items()):
            was = printed[n] if printed[n] == "oom" else f"{printed[n] / printed['nonprivate']:.2f}"
            said.append(f"{n} B={batch} {rate / base:.2f} ({was})")
            if printed[n] != "oom" and n != "nonprivate":
                errors.append(abs(rate / base / (printed[n] / printed["nonprivate"]) - 1))
        yield f"{workload.model} {workload.image_size} px: " + ", ".join(said)
    yield f"{len(errors)} pairs: median {median(errors):.0%}, worst {max(errors):.0%} (no bar)"


def main() -> None:
    said = [
        "# Predictions beside published figures",
        "",
        "Made by `make published`; published figures: report/published.toml.",
    ]
    parts = [
        flops(),
        leading(),
        decisions(),
        pairs(),
        batches(),
        vision(),
    ]
    for part in parts:
        for i, line in enumerate(part):
            said += ["", line, ""] if i == 0 else [f"- {line}"]
            print(line, flush=True)
    REFERENCE.mkdir(parents=True, exist_ok=True)
    (REFERENCE / "published.md").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
