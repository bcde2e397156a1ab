"""The workloads that options ask for, for the commands that predict."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from dpbench.cli.values import List, models, values
from dpbench.records import Workload
from dpbench.sweep import asked, cells_of

axis = partial(typer.Option, rich_help_panel="Workload: axes, which are crossed")

Model = Annotated[list[str], axis("--model", "-m", help="family:name(option=value,...) or file.py:build.")]
Batch = Annotated[List, axis("--batch", "-B", help="Physical batch sizes: 16,32,64.")]
SeqLen = Annotated[List, axis("--seq-len", "--T", help="T, tokens: 64,128.")]
ImageSize = Annotated[List, axis(help="Pixels: 32,64.")]
Layers = Annotated[List, axis(help="Number of layers.")]
Classes = Annotated[List, axis(help="Number of classes.")]
Attention = Annotated[List, axis(help="eager, sdpa.")]
Norm = Annotated[List, axis(help="group: group norm in place of batch norm.")]
Trainable = Annotated[List, axis(help="all, biases, last, norms, pattern:GLOB, lora:r=8,targets=NAME.")]

StepKind = Annotated[List, axis("--step", help="gradient: forward, clip, sum; train: noise and optimizer, too.")]
Optimizer = Annotated[List, axis(help="sgd, adamw; for --step train.")]


def workloads(implementations: List = None, **axes: Any) -> dict[Workload, list[str]]:
    """Each workload with the implementations to look at, the baseline first."""
    found = {name: models(given) if name == "model" else values(given) for name, given in axes.items()}
    found["trainable"] = axes.get("trainable") or None
    found["implementation"] = values(implementations)
    grouped: dict[Workload, list[str]] = {}
    for cell in cells_of(asked(None, found, {})):
        grouped.setdefault(cell.workload, []).append(cell.implementation)
    return grouped
