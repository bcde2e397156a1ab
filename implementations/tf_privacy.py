"""The TensorFlow Privacy algorithm: B microbatches of one example each.

A unit of several examples is a microbatch of its own: their gradients are added up, and clipped once.
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
from dpbench.units import Units

TITLE = "TensorFlow Privacy algorithm"
MODULES = "B x (1 2a 2b)"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


class Microbatches:
    """One forward and one backward per example."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip) -> None:
        self._model, self._losses, self._clip, self._parameters = model, losses, clip, trainable(model)
        self._groups = clip.groups(list(self._parameters))
        self.norm_methods = dict.fromkeys(self._parameters, NormMethod.LOOP)

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """Clip each microbatch's gradient as it comes and add it up."""
        grads = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        B, K, first = size(batch), self._groups.count, next(iter(grads.values()))
        if B == 0:
            return output(
                self._parameters, grads, Clipping(self._clip, self._groups, first, 0).norms, first.new_zeros(0)
            )
        units = None if unit is None else Units(unit, first.device)
        norms: list[Tensor] = []
        losses: dict[int, Tensor] = {}
        for microbatch in [[i] for i in range(B)] if units is None else units.members:
            g = self._gradient(batch, microbatch, mask, losses)
            norms.append(self._norms(g, K))
            factors = self._clip.factors(norms[-1], K)
            for name, value in g.items():
                grads[name].add_(value * rounded(factors[self._groups.of[name]], value.dtype))
        rows = torch.stack(norms)
        told = self._groups.told(rows if units is None else units.by_number(rows))
        return output(self._parameters, grads, told, torch.cat([losses[i] for i in range(B)]))

    def _gradient(
        self, batch: Batch, microbatch: list[int], mask: Tensor | None, losses: dict[int, Tensor]
    ) -> dict[str, Tensor]:
        """Of the summed losses; one example at a time, so that what mixes examples has nothing to mix."""
        g: dict[str, Tensor] = {}
        for i in microbatch:
            loss = self._losses(self._model, example(batch, i))
            losses[i] = loss.detach()
            loss = loss if mask is None else torch.where(mask[i], loss, 0 * loss)
            with refusals.of_plain_backward():
                found = torch.autograd.grad(loss.sum(), list(self._parameters.values()), allow_unused=True)
            if any(value is not None and value.layout != torch.strided for value in found):
                raise refusals.sparse_gradient()
            for name, value in zip(self._parameters, found, strict=True):
                if value is not None:
                    g[name] = g[name] + value if name in g else value
        return g

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
