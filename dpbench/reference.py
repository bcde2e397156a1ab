"""The oracle: an explicit loop over the examples, one forward and one backward each."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, example, size
from dpbench.clipping import Clip
from dpbench.interface import Losses, Output
from dpbench.parameters import trainable

Gradient = dict[str, Tensor]
"""Of one example or unit, by parameter."""


def per_example(
    model: nn.Module,
    losses: Losses,
    batch: Batch,
    clip: Clip,
    *,
    unit: Tensor | None = None,
    mask: Tensor | None = None,
) -> Output:
    """``sum_i C_i g_i`` as the definition says it, and the norms, in the precision of the model.

    Give it a float64 copy of the model to hold others against. Norms are plain sums of squares.
    """
    B = size(batch)
    rows = list(range(B)) if unit is None else unit.tolist()
    parameters = trainable(model)
    gradients: dict[int, Gradient] = {}
    values = []
    for i in range(B):
        loss = losses(model, example(batch, i)).sum()
        values.append(loss.detach())
        if mask is not None and not mask[i]:
            loss = loss * 0
        row = gradients.setdefault(rows[i], {name: torch.zeros_like(p) for name, p in parameters.items()})
        for name, g in _gradient(loss, parameters).items():
            row[name] += g
    total = torch.stack(values) if values else next(iter(parameters.values())).new_zeros(0)
    return _clipped(parameters, gradients, max(rows, default=-1) + 1, total, clip)


def together(model: nn.Module, losses: Losses, batch: Batch, clip: Clip) -> Output:
    """The same of one forward of the whole batch, one backward for each example.

    It equals :func:`per_example` where examples are not mixed, and where the forward draws random
    numbers it is what the batch draws.
    """
    parameters = trainable(model)
    values = losses(model, batch)
    zeros = {name: torch.zeros_like(p) for name, p in parameters.items()}
    gradients = {i: zeros | _gradient(loss, parameters, retain_graph=True) for i, loss in enumerate(values)}
    return _clipped(parameters, gradients, len(values), values.detach(), clip)


def _gradient(loss: Tensor, parameters: Mapping[str, nn.Parameter], *, retain_graph: bool = False) -> Gradient:
    """By ``backward()``, which can do what ``autograd.grad`` cannot (reentrant checkpoints); ``p.grad`` is put back."""
    before = {name: p.grad for name, p in parameters.items()}
    try:
        for p in parameters.values():
            p.grad = None
        if loss.requires_grad:
            loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return {name: p.grad for name, p in parameters.items() if p.grad is not None}
    finally:
        for name, p in parameters.items():
            p.grad = before[name]


def _clipped(
    parameters: Mapping[str, nn.Parameter], gradients: Mapping[int, Gradient], count: int, losses: Tensor, clip: Clip
) -> Output:
    groups = clip.groups(list(parameters))
    first = next(iter(parameters.values()))
    squares = torch.zeros(count, groups.count, dtype=first.dtype, device=first.device)
    for i, row in gradients.items():
        for name, g in row.items():
            squares[i, groups.of[name]] += g.pow(2).sum()
    factors = clip.factors(squares.sqrt(), groups.count)
    sums = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for i, row in gradients.items():
        for name, g in row.items():
            sums[name] += factors[i, groups.of[name]] * g
    return Output(sums, groups.told(squares.sqrt()), losses, clip)
