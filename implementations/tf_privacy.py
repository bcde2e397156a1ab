"""The TensorFlow Privacy algorithm: B microbatches of one example each.

Modules B x (1, 2a, 2b) and one gradient of memory; nothing is computed in parallel over examples.
Source: Abadi et al. 2016, 1607.00133, algorithm 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dpbench import refusals
from dpbench.batch import Batch, example, size
from dpbench.clipping import Clip, Clipping
from dpbench.coverage import NormMethod
from dpbench.interface import Losses, Output, Supports, output
from dpbench.numerics import factors as rounded
from dpbench.numerics import squared_norms
from dpbench.parameters import trainable

TITLE = "TensorFlow Privacy algorithm"
MODULES = "B x (1 2a 2b)"
SUPPORTS = Supports(groups=True)
PRIVATE = True


class Microbatches:
    """One forward and one backward per example."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip) -> None:
        self._model, self._losses, self._clip, self._parameters = model, losses, clip, trainable(model)
        self._groups = clip.groups(list(self._parameters))
        self.norm_methods = dict.fromkeys(self._parameters, NormMethod.LOOP)

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """Clip each example's gradient as it comes and add it up."""
        grads = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        K, norms, losses = self._groups.count, [], []
        for i in range(size(batch)):
            loss = self._losses(self._model, example(batch, i))
            losses.append(loss.detach())
            g = self._gradient(loss if mask is None else torch.where(mask[i], loss, 0 * loss))
            norms.append(self._norms(g, K))
            factors = self._clip.factors(norms[-1], K)
            for name, value in g.items():
                grads[name].add_(value * rounded(factors[self._groups.of[name]], value.dtype))
        if not norms:
            first = next(iter(grads.values()))
            return output(
                self._parameters, grads, Clipping(self._clip, self._groups, first, 0).norms, first.new_zeros(0)
            )
        return output(self._parameters, grads, self._groups.told(torch.stack(norms)), torch.cat(losses))

    def _gradient(self, loss: Tensor) -> dict[str, Tensor]:
        with refusals.of_plain_backward():
            found = torch.autograd.grad(loss.sum(), list(self._parameters.values()), allow_unused=True)
        if any(g is not None and g.layout != torch.strided for g in found):
            raise refusals.sparse_gradient()
        return {name: g for name, g in zip(self._parameters, found, strict=True) if g is not None}

    def _norms(self, g: dict[str, Tensor], K: int) -> Tensor:
        squares: list[Tensor] = [torch.zeros((), device=next(iter(g.values())).device)] * K
        for name, value in g.items():
            k = self._groups.of[name]
            squares[k] = squares[k] + squared_norms(value[None])[0]
        return torch.stack(squares).sqrt()

    def close(self) -> None:
        """Nothing was left on the model."""


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Microbatches:
    """A step for ``model``."""
    return Microbatches(model, losses, clip)
