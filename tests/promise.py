"""The first promise as a function: a step is right on every batch, or it refuses by name."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.interface import Losses, Output
from dpbench.preparation import prepare
from dpbench.reference import per_example

IMPLEMENTATIONS = ["bk", "bk_mixopt", "opacus", "opacus_improved", "fastgradclip", "ghostclip"]


def squares(model: nn.Module, batch: Any) -> Tensor:
    """The sum of squares of each example's outputs."""
    return model(batch["x"]).flatten(1).square().sum(1)  # type: ignore[no-any-return]


def batch_of(*shape: int, seed: int = 0) -> dict[str, Tensor]:
    """A float64 batch of one input."""
    return {"x": torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))}


def right(out: Output, model: nn.Module, losses: Losses, batch: Any, clip: Clip, tolerance: float = 1e-10) -> bool:
    """Against the loop on a copy, so that nothing that the step did is seen by it."""
    return zoo.error(out, per_example(copy.deepcopy(model), losses, batch, clip)) < tolerance


def refusals(
    name: str, net: nn.Module, losses: Losses, batches: Sequence[Any], message: str = "", clip: Clip | None = None
) -> int:
    """How many of the batches are refused, with ``message`` in the reason; asserts that all others are right."""
    clip = clip or Clip(0.7)
    step = prepare(name, net.double(), losses, clip)
    reasons = []
    for batch in batches:
        try:
            out = step(batch)
        except Refused as error:
            reasons.append(str(error))
        else:
            assert right(out, net, losses, batch, clip)
    assert all(message in reason for reason in reasons), reasons
    return len(reasons)
