"""``dpbench predict``: what each implementation costs, without running it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from dpbench.cli.workloads import (
    AsJson,
    Attention,
    Batch,
    Classes,
    ImageSize,
    Impl,
    Layers,
    Model,
    Norm,
    Optimizer,
    SeqLen,
    StepKind,
    Trainable,
    workloads,
)
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import count, ratio, size

if TYPE_CHECKING:
    from dpbench.complexity.predict import Prediction


def predict(
    model: Model,
    batch: Batch = None,
    seq_len: SeqLen = None,
    image_size: ImageSize = None,
    impl: Impl = None,
    layers: Layers = None,
    classes: Classes = None,
    attention: Attention = None,
    norm: Norm = None,
    trainable: Trainable = None,
    step: StepKind = None,
    optimizer: Optimizer = None,
    as_json: AsJson = False,
) -> None:
    """Predict FLOPs and peak memory of a step: the real code is traced on tensors of shapes without memory."""
    from dpbench.complexity import predict as of

    asked = workloads(
        impl, model=model, batch=batch, seq_len=seq_len, image_size=image_size, layers=layers, classes=classes,
        attention=attention, norm=norm, trainable=trainable, step=step, optimizer=optimizer,
    )  # fmt: skip
    everything: list[dict[str, Any]] = []
    for workload, names in asked.items():
        made = []
        for prediction in of.predict(workload, names):
            made.append(prediction)
            if not as_json:
                typer.echo(f"  {prediction.implementation}", err=True)
        everything += [as_object(p) for p in made]
        if not as_json:
            typer.echo("\n".join(lines(made)) + "\n")
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


def as_object(p: Prediction) -> dict[str, Any]:
    """One prediction for machines."""
    found: dict[str, Any] = {
        "implementation": p.implementation,
        "model": p.workload.model,
        "batch": p.workload.batch,
        "T": p.workload.seq_len,
        "image_size": p.workload.image_size,
        "coverage": {"trained": p.trainable, "frozen": p.parameters - p.trainable, "refused": p.reason or None},
    }
    if p.trace is not None:
        found["flops"] = {
            "analytic": None if p.analytic is None else p.analytic.total(),
            "traced": p.trace.total,
            "by_module": {"analytic": dict(p.analytic or {}), "traced": dict(p.trace.flops)},
            "others": dict(p.trace.others),
        }
        found["peak_bytes"] = {"traced": p.trace.peak, "in": p.trace.peak_in, "resident": p.trace.resident}
    return found


def lines(made: list[Prediction]) -> list[str]:
    """One workload for people."""
    from dpbench.complexity.trace import MODULES

    first = made[0]
    base = next((p.trace for p in made if p.implementation == "nonprivate" and p.trace), None)
    modules = [m for m in MODULES if any(p.trace and p.trace.flops[m] for p in made)]
    table = [["implementation", "FLOPs", "ratio", *modules, "other", "peak", "ratio", "peak in"]]
    notes = []
    for p in made:
        if p.trace is None:
            notes.append(f"{p.implementation} refuses: {p.reason}")
            continue
        t = p.trace
        each = [count(t.flops[m]) if t.flops[m] else "" for m in modules]
        speed = ratio(t.total / base.total) if base else "-"
        memory = ratio(t.peak / base.peak) if base else "-"
        other = f"{p.other / t.total:+.1%}" if p.other else "0"
        table.append([p.implementation, count(t.total), speed, *each, other, size(t.peak), memory, t.peak_in])
    there = max((p.trace.resident for p in made if p.trace), default=0)
    head = f"{first.workload.label()}  ({count(first.parameters)} parameters, {size(there)} before the step)"
    return [
        head,
        *(f"  {line}" for line in aligned(table)),
        "",
        *(f"{m}: {MODULES[m]}" for m in modules),
        "other: FLOPs that the modules' formulas do not count (attention's products) or count as more (negative: a "
        "cheaper kernel), of the total",
        "peak: bytes above what is there before the step: parameters, buffers, batch, the optimizer's state",
        *notes,
    ]


__all__ = ["as_object", "lines", "predict"]
