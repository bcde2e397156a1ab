"""The axes of a workload as options, the same for every command, and the workloads that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from dpbench.cli.values import List, models, values
from dpbench.errors import DpbenchError
from dpbench.records import Workload
from dpbench.sweep import asked, cells_of

axis = partial(typer.Option, rich_help_panel="What is run: axes, which are crossed")
clipping = partial(typer.Option, rich_help_panel="Clipping: axes, too")
timing = partial(typer.Option, rich_help_panel="Timing")

Switch = bool | None

OPTIONS: Mapping[str, Any] = {
    "model": Annotated[List, axis("--model", "-m", help="family:name(option=value,...) or file.py:build.")],
    "batch": Annotated[List, axis("--batch", "-B", help="Physical batch sizes: 16,32,64; max: the largest that fits.")],
    "logical_batch": Annotated[List, axis("--logical-batch", help="Examples of a step, as several physical batches.")],
    "seq_len": Annotated[List, axis("--seq-len", "--T", help="T, tokens: 64,128.")],
    "image_size": Annotated[List, axis("--image-size", help="Pixels: 32,64.")],
    "implementation": Annotated[List, axis("--impl", "-i", help="Implementations, files of one, patterns, or all.")],
    "layers": Annotated[List, axis("--layers", help="Number of layers.")],
    "classes": Annotated[List, axis("--classes", help="Number of classes.")],
    "precision": Annotated[List, axis("--precision", help="fp32, tf32, bf16, amp-bf16.")],
    "attention": Annotated[List, axis("--attention", help="eager, sdpa.")],
    "checkpointing": Annotated[
        Switch, axis("--checkpointing/--no-checkpointing", help="Activations of blocks are computed again backwards.")
    ],
    "loss_chunk": Annotated[List, axis("--loss-chunk", help="Logits and loss for so many tokens at a time.")],
    "norm": Annotated[List, axis("--norm", help="group: group norm in place of batch norm.")],
    "trainable": Annotated[
        List, axis("--trainable", help="all, biases, last, norms, pattern:GLOB, lora:r=8,targets=NAME.")
    ],
    "step": Annotated[List, axis("--step", help="gradient: forward, clip, sum; train: noise and optimizer, too.")],
    "optimizer": Annotated[
        List, axis("--optimizer", help="sgd, adamw, adamw_loop (as torch before 2.0); for --step train.")
    ],
    "seed": Annotated[List, axis("--seed", help="Of weights and batch.")],
    "max_norm": Annotated[List, clipping("--max-norm", help="R, the clipping norm.")],
    "clip_function": Annotated[List, clipping("--clip-function", help="abadi, automatic, normalize.")],
    "clip_style": Annotated[List, clipping("--clip-style", help="flat, per-layer.")],
    "device": Annotated[List, timing("--device", "-d", help="torch's name: cpu, cuda, cuda:1.")],
    "threads": Annotated[List, timing("--threads", help="CPU threads.")],
}
"""By axis, in the order of the help."""

MODEL = ("model", "seq_len", "image_size", "layers", "classes", "attention", "checkpointing", "loss_chunk", "norm")
"""The axes that say what is run, whoever runs it."""
STEP = ("implementation", "precision", "trainable", "step", "optimizer")
"""The axes that say what a step is."""

SuiteName = Annotated[str | None, typer.Argument(metavar="[SUITE]", help="A suite; see: dpbench list suites.")]
CardName = Annotated[str | None, typer.Option("--card", help="A card that need not be here; see: dpbench list cards.")]
AsJson = Annotated[bool, typer.Option("--json", help="A list of objects, and nothing else on stdout.")]

Command = Callable[..., None]
Axes = dict[str, Any]
"""What was given of each axis that a command takes; None where nothing was."""


def takes(*names: str) -> Callable[[Command], Command]:
    """Let a command have the options of these axes, beside its own; it gets them together as ``axes``."""

    def decorate(command: Command) -> Command:
        own = [p for p in signature(command, eval_str=True).parameters.values() if p.name != "axes"]
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in OPTIONS.items()
            if name in names
        ]
        parameters = [*shared, *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in own)]

        @wraps(command)
        def called(**given: Any) -> None:
            command(axes={p.name: given.pop(p.name) for p in shared}, **given)

        # typer reads both.
        vars(called)["__signature__"] = signature(command).replace(parameters=parameters)
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        return called

    return decorate


def in_lists(axes: Axes) -> Axes:
    """The values of each axis as a suite has them; what was not given stays None."""
    return {name: _values(name, given) for name, given in axes.items()}


def _values(name: str, given: Any) -> list[Any] | None:
    if name == "model":
        return models(given)
    if name == "checkpointing":
        return None if given is None else [given]
    if name in ("trainable", "clip_style"):
        # Their values have commas of their own.
        return given or None
    return values(given, float if name == "max_norm" else int)


def workloads(suite: str | None, axes: Axes) -> dict[Workload, list[str]]:
    """Each workload of a suite, or of the options, with the implementations to look at, the baseline first.

    Raises:
        DpbenchError: neither is given.
    """
    found = in_lists(axes)
    if suite is None and found.get("model") is None:
        raise DpbenchError("nothing to look at: give a suite (see: dpbench list suites) or --model")
    grouped: dict[Workload, list[str]] = {}
    for cell in cells_of(asked(suite, found, {})):
        grouped.setdefault(cell.workload, []).append(cell.implementation)
    return grouped
