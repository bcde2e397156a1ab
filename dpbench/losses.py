"""Losses with one number for each example, as per-sample gradients need them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from dpbench.errors import DpbenchError

IGNORED = -100
"""The label of a token that does not count."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of classifiers: logits (B, K), labels (B,) -> (B,)."""
    return F.cross_entropy(logits, labels, reduction="none")


def language_model(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy over each example's own valid tokens: logits (B, T, V), labels (B, T) -> (B,).

    Labels of -100 do not count; an example without a valid token has loss zero. A mean over all
    tokens of the batch would make one example's gradient depend on how long the others are.
    """
    tokens = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=IGNORED).view_as(
        labels
    )
    valid = (labels != IGNORED).to(tokens.dtype)
    return (tokens * valid).sum(1) / valid.sum(1).clamp(min=1)


def check_losses(losses: Any, batch: int) -> None:
    """Raise unless ``losses`` holds one loss for each example."""
    if not isinstance(losses, Tensor) or losses.shape != (batch,):
        got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
        raise DpbenchError(
            f"losses(model, batch) returned {got}; expected one loss per example, shape ({batch},). "
            'Use reduction="none", and for text average over each example\'s own tokens: '
            "dpbench.losses.language_model and dpbench.losses.cross_entropy do."
        )
