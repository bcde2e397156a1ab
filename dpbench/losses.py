"""Losses with one number for each example, as per-sample gradients need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from dpbench.checkpoints import checkpointed
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


def language_model_in_chunks(hidden: Tensor, head: Callable[[Tensor], Tensor], labels: Tensor, size: int) -> Tensor:
    """:func:`language_model` of ``head(hidden)``, whose logits exist for ``size`` tokens of each example at a time.

    hidden (B, T, d), labels (B, T) -> (B,). Each piece is a checkpoint: the backward computes its logits again.
    """

    def piece(hidden: Tensor, labels: Tensor) -> Tensor:
        logits = head(hidden).flatten(0, 1)
        tokens = F.cross_entropy(logits, labels.flatten(), reduction="none", ignore_index=IGNORED)
        return tokens.view_as(labels).sum(1)

    if size < 1:
        raise DpbenchError(f"the loss is to be computed for {size} tokens at a time; expected 1 or more")
    pieces = [
        checkpointed(piece, hidden[:, start : start + size], labels[:, start : start + size])
        for start in range(0, labels.shape[1], size)
    ]
    total: Tensor = sum(pieces[1:], pieces[0])
    return total / (labels != IGNORED).to(total.dtype).sum(1).clamp(min=1)


def check_losses(losses: Any, batch: int) -> None:
    """Raise unless ``losses`` holds one loss for each example."""
    if not isinstance(losses, Tensor) or losses.shape != (batch,):
        got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
        raise DpbenchError(
            f"losses(model, batch) returned {got}; expected one loss per example, shape ({batch},). "
            'Use reduction="none", and for text average over each example\'s own tokens: '
            "dpbench.losses.language_model and dpbench.losses.cross_entropy do."
        )
