"""What a case of the conformance kit is made of. Nothing but torch here and in the cases: scripts copy their source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(slots=True)
class Call:
    """One physical batch: a dict of tensors, batch first; ``unit`` and ``mask`` as a step takes them."""

    batch: dict[str, Tensor]
    unit: Tensor | None = None
    mask: Tensor | None = None


@dataclass(slots=True)
class Problem:
    """A model, one loss per example, and the calls of one step after the other; every one has to be right."""

    model: nn.Module
    losses: Callable[[nn.Module, Any], Tensor]
    calls: tuple[Call, ...]
    max_norm: float | None = None
    """R; None: the median norm of the first call, so that some of its examples are clipped and some are not."""
    style: str | Mapping[str, str] = "flat"
    norms: tuple[float, ...] | None = None
    """Of the first call, where arithmetic gives them: the loop over the examples is held against them, too."""
    native: bool = False
    """Whether the losses autocast, so that the verdict falls in their precision and not in float64."""
    rounding: float = 0.0
    """The relative error that is allowed for, as the model casts to float32 inside."""
    random: bool = False
    """Whether the forward draws: right is what the seed gives to the whole batch, or to one example after the other."""


def vectors(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, the same at every time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(below: int, *shape: int, seed: int = 0) -> Tensor:
    """Ids or labels, the same at every time."""
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))


class Net(nn.Module):
    """A module whose forward is a function of itself and its inputs; tensors among its parts are parameters."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, Tensor) else part)

    def forward(self, *inputs: Any) -> Any:
        """What the function says."""
        return self.function(self, *inputs)


def squares(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The sum of the squares of each example's outputs."""
    out: Tensor = model(batch["x"])
    return out.flatten(1).square().sum(1)


def cross_entropy(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Of each example's outputs, all of them logits."""
    return F.cross_entropy(model(batch["x"]).flatten(1), batch["y"], reduction="none")


def labelled(x: Tensor) -> dict[str, Tensor]:
    """A batch of inputs (B, ...) in three classes."""
    return {"x": x, "y": integers(3, len(x), seed=1)}


def classified(model: nn.Module, x: Tensor, *others: Tensor, **kwargs: Any) -> Problem:
    """Inputs (B, ...) in three classes; further batches are further calls."""
    return Problem(model, cross_entropy, tuple(Call(labelled(value)) for value in (x, *others)), **kwargs)
