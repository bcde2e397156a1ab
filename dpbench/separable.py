"""Proofs that examples are separable: that each has the loss and the gradient which it has alone.

Gradients are compared by a random projection ``sum_p u_p^T g_p v_p`` (the same u and v each time), so
that no second gradient has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dpbench import refusals
from dpbench.errors import DpbenchError, Refused

WEIGHTS = (1.0, 0.5, 0.25)
"""Of the losses in the test of linearity."""


class Gradient(NamedTuple):
    """A gradient over all parameters: its random projection, and its Euclidean norm."""

    projection: float
    size: float


def gradient(loss: Tensor, parameters: Sequence[Tensor]) -> Gradient:
    """Differentiate a loss, keeping its graph; raises Refused where a plain backward fails."""
    if not loss.requires_grad:
        return Gradient(0.0, 0.0)
    with refusals.of_plain_backward():
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    if any(g is not None and g.layout != torch.strided for g in found):
        raise refusals.sparse_gradient()
    generator = Generator().manual_seed(0)
    projection, square = 0.0, 0.0
    for g, parameter in zip(found, parameters, strict=True):
        rows = parameter.shape[0] if parameter.ndim else 1
        left, right = (torch.randn(n, generator=generator) for n in (rows, max(parameter.numel() // max(rows, 1), 1)))
        if g is None or not g.numel():
            continue
        matrix = g.detach().reshape(rows, -1)
        matrix = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        projection += float(left.to(matrix) @ (matrix @ right.to(matrix)))
        square += float(torch.linalg.vector_norm(matrix, dtype=torch.float64)) ** 2
    return Gradient(projection, square**0.5)


def refuse_non_finite(losses: Tensor) -> None:
    """Raise if a loss is infinite or no number: nothing could be established from it."""
    bad = (~torch.isfinite(losses)).nonzero().flatten().tolist()
    if bad:
        raise DpbenchError(
            f"the loss of example {bad[0]} is {losses[bad[0]].item():g}, so nothing can be established from it. "
            "Begin with a batch whose losses are finite: mend the input, or widen the precision."
        )


def refuse_non_finite_gradients(together: Sequence[Gradient]) -> None:
    """Raise if a gradient is infinite or no number, though the losses are finite."""
    if not all(isfinite(g.size) for g in together):
        raise DpbenchError(
            "the gradient of an example is not finite though its loss is, so nothing can be established from it. "
            "Begin with a batch whose gradients are finite: mend the input, or widen the precision."
        )


def refuse_moving(before: Tensor, after: Tensor, changed: int, tolerance: float) -> None:
    """Raise if changing one example moved the loss of another."""
    for j in range(len(before)):
        if j != changed and _differ(after[j].item(), before[j].item(), abs(before[j].item()) + 1, tolerance):
            raise Refused(
                f"examples are mixed: changing example {changed} moved the loss of example {j} from "
                f"{before[j].item():.6g} to {after[j].item():.6g}. "
                "Compute every example's loss from that example alone."
            )


def refuse_nonlinear(
    losses: Tensor, together: Sequence[Gradient], parameters: Sequence[Tensor], tolerance: float
) -> None:
    """Raise unless the gradient of a weighted sum of losses is the weighted sum of their gradients."""
    c = torch.tensor(WEIGHTS, dtype=losses.dtype, device=losses.device)
    found = gradient((c * losses).sum(), parameters).projection
    expected = sum(w * g.projection for w, g in zip(WEIGHTS, together, strict=True))
    if _differ(found, expected, _scale(losses, together, tolerance), tolerance):
        raise Refused(
            "the backward is not linear in the losses: a hook on an activation (gradient clipping or scaling by a "
            "norm) or a custom backward changes gradients, so that a sum of losses has not the sum of their "
            "gradients. Remove it."
        )


def refuse_unlike_alone(
    alone: Tensor, losses: Tensor, together: Sequence[Gradient], j: int, parameters: Sequence[Tensor], tolerance: float
) -> None:
    """Raise unless example j has the loss and the gradient in the batch that it has alone, as the loop computes it."""
    loss, expected = losses[j].item(), alone[0].item()
    if _differ(loss, expected, abs(expected) + 1, tolerance):
        raise Refused(
            f"examples are mixed: the loss of example {j} is {expected:.6g} alone and {loss:.6g} among {len(losses)}. "
            "Compute every example's loss from that example alone."
        )
    own = gradient(alone[0], parameters)
    if _differ(together[j].projection, own.projection, _scale(losses, (*together, own), tolerance), tolerance):
        raise Refused(
            f"examples are mixed: the gradient of example {j} is another in the batch than alone, though its loss is "
            "the same. Remove what mixes them in the backward (scale_grad_by_freq, hooks, custom backwards)."
        )


def refuse_unlike_in_batch(losses: Tensor, other: Mapping[int, float], where: str, tolerance: float) -> None:
    """Raise if an example has another loss among those of its whole batch than it has ``where`` it was computed, too.

    What three examples do not show, as labels that occur once among them and twice in the batch.
    """
    for i, expected in other.items():
        loss = losses[i].item()
        # What is not finite in both is the same, and no step is taken with it.
        if (isfinite(loss) or isfinite(expected)) and _differ(loss, expected, abs(expected) + 1, tolerance):
            raise Refused(
                f"examples are mixed: the loss of example {i} is {expected:.6g} {where} and {loss:.6g} in the batch of "
                f"{len(losses)}. Compute every example's loss from that example alone."
            )


def _scale(losses: Tensor, gradients: Sequence[Gradient], tolerance: float) -> float:
    """The size of the gradients, or of the rounding that is all of them where they are zero."""
    return sum(g.size for g in gradients) + 16 * tolerance * float(losses.detach().abs().sum())


def _differ(a: float, b: float, scale: float, tolerance: float) -> bool:
    return not abs(a - b) <= tolerance * scale + 1e-300
