"""What an implementation of the DP-SGD gradient is: what it says of itself, takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from dpbench.batch import Batch
from dpbench.clipping import Clip
from dpbench.coverage import NormMethod
from dpbench.errors import DpbenchError

Losses = Callable[[nn.Module, Batch], Tensor]
"""``losses(model, batch)`` gives one loss per example, shape (B,)."""


@dataclass(slots=True)
class Output:
    """What one step gives.

    ``grads``: the clipped sum ``sum_i C_i g_i`` of every trainable parameter, by the name that
    ``named_parameters()`` gives it; ``p.grad`` is the same tensor. ``norms``: (B,) gradient norms
    before clipping, (B, K) for K clipping groups, None where nothing is clipped (nonprivate); with units
    a row for each number up to the largest, zero where no example has it.
    ``losses``: (B,), detached. ``clip``: how it was clipped, None if it was not.

    Physical batches of one logical step are added: ``step(first) + step(second)``.
    """

    grads: dict[str, Tensor]
    norms: Tensor | None
    losses: Tensor
    clip: Clip | None = None

    def __add__(self, other: Output) -> Output:
        """The clipped sum over the examples of both; raises DpbenchError if they are not of one step."""
        if self.clip != other.clip or self.grads.keys() != other.grads.keys():
            raise DpbenchError(
                f"outputs of different steps cannot be added: one is clipped by {self.clip}, the other by "
                f"{other.clip}, over {len(self.grads)} and {len(other.grads)} parameters; expected one prepared step"
            )
        both = None if self.norms is None or other.norms is None else torch.cat([self.norms, other.norms])
        sums = {name: g + other.grads[name] for name, g in self.grads.items()}
        return Output(sums, both, torch.cat([self.losses, other.losses]), self.clip)


def output(
    parameters: Mapping[str, nn.Parameter], sums: Mapping[str, Tensor | None], norms: Tensor | None, losses: Tensor
) -> Output:
    """A step's output, put into every ``p.grad`` as well; zero where nothing depends on the parameter."""
    grads = {}
    for name, parameter in parameters.items():
        total = sums.get(name)
        grads[name] = parameter.grad = torch.zeros_like(parameter) if total is None else total.to(parameter.dtype)
    return Output(grads, norms, losses)


class Step(Protocol):
    """One prepared implementation: call it once per physical batch.

    It may have one attribute more, which no one has to offer: see :func:`norm_methods`.
    """

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """Compute the clipped sum.

        ``unit``: (B,) numbers from 0; examples of one unit (a user) are summed before clipping, and
        the norms are the units'. A unit is clipped once for each physical batch that it is in: keep its
        examples in one. Numbers on the CPU cost no synchronisation. ``mask``: (B,) truth values; rows
        that only pad a Poisson batch are False and contribute nothing. They are computed all the same,
        so their values must be finite.
        """
        ...

    def close(self) -> None:
        """Leave no hook and no flag behind on the model."""
        ...


def norm_methods(step: Step) -> Mapping[str, str]:
    """How a step found the norms in its last call: a :class:`~dpbench.coverage.NormMethod` by parameter's name.

    A step says it in an attribute ``norm_methods``, for the coverage in the records; empty where it
    does not tell, or took no norms.

    Raises:
        DpbenchError: if that is no mapping.
    """
    told = getattr(step, "norm_methods", {})
    if not isinstance(told, Mapping):
        raise DpbenchError(
            f"norm_methods is a {type(told).__name__}; expected a mapping from names of parameters to one of "
            f"{', '.join(NormMethod)}"
        )
    return told


@dataclass(frozen=True, slots=True)
class Supports:
    """What an implementation can do beyond flat clipping; anything else is refused by name."""

    groups: bool = False
    """One factor per clipping group and example, rather than one per example."""
    units: bool = False
    """Per-user clipping: the gradients of one unit's examples are summed before the norm."""


class Implementation(Protocol):
    """A module or object with these attributes is an implementation."""

    TITLE: str
    SUPPORTS: Supports
    MODULES: str
    """Its cost in the paper's modules, for example ``1 2a 3 2b``."""
    PRIVATE: bool
    """Whether it clips: False is a baseline, whose sum no noise can make private."""
    # STABILITY: float, where it has one: the s in its own min(1, R / (||g_i|| + s)). It is taken where the
    # user asks for none. NEEDS: str, of what wraps a library: what is missing and how to get it, or nothing.

    def prepare(self, model: nn.Module, losses: Losses, clip: Clip) -> Step:
        """A step for this model; called once."""
        ...
