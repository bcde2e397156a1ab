"""The oracle: an explicit loop over the examples, one forward and one backward each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, example, size
from dpbench.clipping import Clip
from dpbench.interface import Losses, Output
from dpbench.parameters import trainable


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
    parameters = trainable(model)
    groups = clip.groups(list(parameters))
    K, B = groups.count, size(batch)
    rows = list(range(B)) if unit is None else unit.tolist()
    gradients: dict[int, dict[str, Tensor]] = {}
    values = []
    for i in range(B):
        loss = losses(model, example(batch, i)).sum()
        values.append(loss.detach())
        if mask is not None and not mask[i]:
            loss = loss * 0
        grads = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        row = gradients.setdefault(rows[i], {name: torch.zeros_like(p) for name, p in parameters.items()})
        for name, g in zip(parameters, grads, strict=True):
            if g is not None:
                row[name] += g
    first = next(iter(parameters.values()))
    count = max(rows, default=-1) + 1
    squares = torch.zeros(count, K, dtype=first.dtype, device=first.device)
    for i, row in gradients.items():
        for name, g in row.items():
            squares[i, groups.of[name]] += g.pow(2).sum()
    factors = clip.factors(squares.sqrt(), K)
    sums = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for i, row in gradients.items():
        for name, g in row.items():
            sums[name] += factors[i, groups.of[name]] * g
    norms = squares.sqrt()
    total = torch.stack(values) if values else first.new_zeros(0)
    return Output(sums, groups.told(norms), total, clip)
