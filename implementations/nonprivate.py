"""Non-private training: the gradient of the summed losses, with nothing clipped.

Modules 1, 2a, 2b; leading time 6 B T p d per layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dpbench import refusals
from dpbench.batch import Batch, size
from dpbench.clipping import Clip
from dpbench.interface import Losses, Output, Supports, output
from dpbench.parameters import trainable

TITLE = "Non-private"
MODULES = "1 2a 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = False


class NonPrivate:
    """One forward and one backward of the whole batch."""

    def __init__(self, model: nn.Module, losses: Losses) -> None:
        self._model, self._losses, self._parameters = model, losses, trainable(model)

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """``sum_i g_i``."""
        if size(batch) == 0:
            return output(self._parameters, {}, None, next(iter(self._parameters.values())).new_zeros(0))
        losses = self._losses(self._model, batch)
        total = losses.sum() if mask is None else losses[mask].sum()
        with refusals.of_plain_backward():
            found = torch.autograd.grad(total, list(self._parameters.values()), allow_unused=True)
        if any(g is not None and g.layout != torch.strided for g in found):
            raise refusals.sparse_gradient()
        sums = dict(zip(self._parameters, found, strict=True))
        return output(self._parameters, sums, None, losses.detach())

    def close(self) -> None:
        """Nothing was left on the model."""


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> NonPrivate:
    """A step for ``model``; ``clip`` is not used."""
    return NonPrivate(model, losses)
