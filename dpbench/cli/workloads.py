"""The axes of a workload as options, the same for every command, and the workloads that they ask for."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from dpbench.cli.values import List, models, values
from dpbench.errors import DpbenchError
from dpbench.records import Workload
from dpbench.sweep import asked, cells_of

axis = partial(typer.Option, rich_help_panel="What is run: axes, which are crossed")

Model = Annotated[List, axis("--model", "-m", help="family:name(option=value,...) or file.py:build.")]
Batch = Annotated[List, axis("--batch", "-B", help="Physical batch sizes: 16,32,64, or max: the largest that fits.")]
LogicalBatch = Annotated[List, axis("--logical-batch", help="Examples of a step, as several physical batches.")]
SeqLen = Annotated[List, axis("--seq-len", "--T", help="T, tokens: 64,128.")]
ImageSize = Annotated[List, axis("--image-size", help="Pixels: 32,64.")]
Impl = Annotated[List, axis("--impl", "-i", help="Implementations, files of one, patterns, or all.")]
Layers = Annotated[List, axis("--layers", help="Number of layers.")]
Classes = Annotated[List, axis("--classes", help="Number of classes.")]
Precision = Annotated[List, axis("--precision", help="fp32, tf32, bf16, amp-bf16.")]
Attention = Annotated[List, axis("--attention", help="eager, sdpa.")]
Checkpointing = Annotated[
    bool | None, axis("--checkpointing/--no-checkpointing", help="Activations of blocks are computed again backwards.")
]
LossChunk = Annotated[List, axis("--loss-chunk", help="Logits and loss for so many tokens at a time.")]
Norm = Annotated[List, axis("--norm", help="group: group norm in place of batch norm.")]
Trainable = Annotated[List, axis("--trainable", help="all, biases, last, norms, pattern:GLOB, lora:r=8,targets=NAME.")]
StepKind = Annotated[List, axis("--step", help="gradient: forward, clip, sum; train: noise and optimizer, too.")]
Optimizer = Annotated[List, axis("--optimizer", help="sgd, adamw; for --step train.")]
SuiteName = Annotated[str | None, typer.Argument(metavar="[SUITE]", help="A suite; see: dpbench list suites.")]
CardName = Annotated[str | None, typer.Option("--card", help="A card that need not be here; see: dpbench list cards.")]
AsJson = Annotated[bool, typer.Option("--json", help="A list of objects, and nothing else on stdout.")]


def workloads(suite: str | None, implementations: List = None, **axes: Any) -> dict[Workload, list[str]]:
    """Each workload of a suite, or of the options, with the implementations to look at, the baseline first.

    Raises:
        DpbenchError: neither is given.
    """
    checkpointing = axes.pop("checkpointing", None)
    found = {name: models(given) if name == "model" else values(given) for name, given in axes.items()}
    found["checkpointing"] = None if checkpointing is None else [checkpointing]
    found["trainable"] = axes.get("trainable") or None
    found["implementation"] = values(implementations)
    if suite is None and found.get("model") is None:
        raise DpbenchError("nothing to look at: give a suite (see: dpbench list suites) or --model")
    grouped: dict[Workload, list[str]] = {}
    for cell in cells_of(asked(suite, found, {})):
        grouped.setdefault(cell.workload, []).append(cell.implementation)
    return grouped
