"""``dpbench maxbatch``: the largest batch that fits into a memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpbench.cli.workloads import (
    AsJson,
    Attention,
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
from dpbench.errors import Refused
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import ratio, size
from dpbench.sizes import bytes_of


def maxbatch(
    model: Model,
    memory: Annotated[str, typer.Option(help="What fits the whole step: 40GB (1e9 bytes), 40GiB (2^30).")],
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
    """Find the largest batch whose step fits into a memory, by tracing; nothing is run.

    What a card's driver and allocator take for themselves is not known here: leave it out of --memory.
    """
    from dpbench.complexity.maxbatch import largest

    capacity = bytes_of(memory)
    asked = workloads(
        impl, model=model, batch=["1"], seq_len=seq_len, image_size=image_size, layers=layers, classes=classes,
        attention=attention, norm=norm, trainable=trainable, step=step, optimizer=optimizer,
    )  # fmt: skip
    everything: list[dict[str, Any]] = []
    for workload, names in asked.items():
        found: list[dict[str, Any]] = []
        for name in names:
            start = {"implementation": name, "model": workload.model, "T": workload.seq_len}
            try:
                most = largest(name, workload, capacity)
            except Refused as error:
                found.append({**start, "max_batch": None, "reason": str(error)})
                continue
            bytes_ = {"need": most.need, "next": most.next, "resident": most.trace.resident, "capacity": capacity}
            found.append({**start, "max_batch": most.batch, "bytes": bytes_, "peak_in": most.trace.peak_in})
            if not as_json:
                typer.echo(f"  {name} {most.batch}", err=True)
        everything += found
        if not as_json:
            label = replace(workload, batch=1).label().replace(" B=1", "")
            typer.echo("\n".join([f"{label} in {size(capacity)}", *lines(found)]) + "\n")
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


def lines(found: list[dict[str, Any]]) -> list[str]:
    """For people."""
    base = next((f["max_batch"] for f in found if f["implementation"] == "nonprivate"), None)
    table = [["implementation", "largest B", "ratio", "needs", "B + 1 needs", "peak in"]]
    notes = []
    for f in found:
        if f["max_batch"] is None:
            notes.append(f"{f['implementation']} refuses: {f['reason']}")
            continue
        more = "-" if f["bytes"]["next"] is None else size(f["bytes"]["next"])
        relative = ratio(f["max_batch"] / base) if base else "-"
        batch = str(f["max_batch"]) if f["max_batch"] else "none fits"
        table.append([f["implementation"], batch, relative, size(f["bytes"]["need"]), more, f["peak_in"]])
    return [*(f"  {line}" for line in aligned(table)), *notes]
