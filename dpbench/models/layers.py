"""One layer alone, for those who time its rule: ``layer:linear(d=768,p=3072,T=128)``.

The model is the layer ``W`` and as little around it as a gradient needs. The loss of example i is

    L_i = y_i <v, W(x_i + u y_i)>

with v a fixed random vector (a buffer, so it is no parameter), y_i a number of the example between 1/2 and 3/2, so
that no two examples have the same norm, and u one trained number, a linear layer from 1 to 1. Through u the layer's
input depends on a parameter, so that output gradients go through the layer (module 2a), as they do inside a network.
``first=true`` leaves u out: then the layer has no 2a, as the first of a network, and as in the layer benchmarks of
Opacus. Embeddings read ids and are always first. v costs one product of a matrix and a vector in the forward and one
of two vectors in the backward, u the reading and writing of the input and of its gradient: next to nothing beside a
product of matrices; beside a norm layer it is seen, in non-private training, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn

from dpbench.errors import DpbenchError, unknown
from dpbench.models.options import checked, defaults
from dpbench.models.pieces import KINDS, Piece
from dpbench.models.spec import Spec
from dpbench.models.task import Task
from dpbench.records import Workload

AXES = {"seq_len": "T", "image_size": "px", "layers": "layers"}
"""Axes of a workload, and the options that mean the same."""


class Alone(nn.Module):
    """A layer between one trained number and one fixed vector; ``forward`` gives the losses."""

    def __init__(self, piece: Piece, outputs: int, first: bool) -> None:
        super().__init__()
        self.before = None if first else nn.Linear(1, 1, bias=False)
        self.layer, self.call = piece.layer, piece.call
        self.direction: Tensor
        self.register_buffer("direction", torch.randn(outputs) / outputs**0.5)

    def forward(self, y: Tensor, *inputs: Tensor) -> Tensor:
        """Numbers (B,) and the layer's inputs (B, ...) to (B,)."""
        if self.before is not None:
            shift = self.before(y[:, None])
            inputs = tuple(x + shift.view(-1, *[1] * (x.ndim - 1)) for x in inputs)
        out = self.call(self.layer, *inputs).flatten(1)
        # Under autocast the output is narrower than the buffer.
        return y * torch.mv(out, self.direction.to(out.dtype))


def losses(model: nn.Module, batch: Any) -> Tensor:
    """The model gives them."""
    out: Tensor = model(batch["y"], *batch["x"])
    return out


def build(spec: Spec, workload: Workload) -> Task:
    """The layer of that name.

    Raises:
        DpbenchError: there is none, or none with these sizes.
        Refused: for an axis that it lacks.
    """
    if spec.name not in KINDS:
        raise unknown("layer", spec.name, KINDS)
    kind, known = KINDS[spec.name], options_of(spec.name)
    options = checked(spec, known, from_zero=("padding",))
    spec.refuse(workload, "classes", "attention", "loss_chunk", *(a for a, o in AXES.items() if o not in known))
    for axis, option in AXES.items():
        if option in known and (value := spec.settle(option, axis, workload)) is not None:
            options.setdefault(option, value)
    first = options.pop("first", known.get("first", True))
    try:
        with torch.device("meta"):
            shape = kind(**options).output
    except (RuntimeError, ValueError, AssertionError) as error:
        raise DpbenchError(f"layer:{spec.name} cannot be built with {_spelled(known | options)}: {error}") from error
    piece = kind(**options)

    def batches(size: int, seed: int) -> dict[str, Any]:
        g = Generator().manual_seed(seed)
        return {"x": piece.inputs(size, g), "y": torch.rand(size, generator=g) + 0.5}

    shapes = " and ".join("x".join(map(str, s)) for s in piece.shapes)
    source = f"torch.nn.{type(piece.layer).__name__} from {shapes} to {'x'.join(map(str, shape))}"
    return Task(Alone(piece, shape.numel(), first), losses, batches, "vector", source)


def options_of(name: str) -> dict[str, Any]:
    """The options of a layer, and their defaults."""
    known = defaults(KINDS[name])
    return known if "V" in known else known | {"first": False}


def described() -> dict[str, str]:
    """What each layer is, and its options as they stand in brackets."""
    what = {name: (kind.__doc__ or "").splitlines()[0] for name, kind in KINDS.items()}
    return {name: f"{text} {_spelled(options_of(name))}" for name, text in what.items()}


def _spelled(options: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={str(value).lower()}" for name, value in options.items())
