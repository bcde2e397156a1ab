"""Synthetic batches, the same for the same seed on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from dpbench.batch import Batch, take
from dpbench.batch import size as batch_size
from dpbench.losses import IGNORED
from dpbench.models.task import Batches


def classified(shape: Sequence[int], classes: int) -> Batches:
    """Normal inputs ``x`` (B, *shape) with labels ``y`` (B,)."""

    def batches(size: int, seed: int) -> dict[str, Tensor]:
        g = Generator().manual_seed(seed)
        return {
            "x": torch.randn(size, *shape, generator=g),
            "y": torch.randint(classes, (size,), generator=g),
        }

    return batches


def sequences(T: int, vocab: int, *, classes: int | None = None, shifted: bool = False, lowest: int = 0) -> Batches:
    """Token ids (B, T) with ``labels``: classes (B,), or the ids themselves, one step on where ``shifted``.

    Ids from ``lowest`` up, so that none is a padding token.
    """

    def batches(size: int, seed: int) -> dict[str, Tensor]:
        g = Generator().manual_seed(seed)
        ids = torch.randint(min(lowest, vocab - 1), vocab, (size, T), generator=g)
        if classes is not None:
            return {"input_ids": ids, "labels": torch.randint(classes, (size,), generator=g)}
        labels = ids
        if shifted:
            labels = torch.cat([ids[:, 1:], torch.full((size, 1), IGNORED)], 1)
        return {"input_ids": ids, "labels": labels}

    return batches


def repeated(batch: Batch) -> Batches:
    """The rows of one batch, which has some, again and again from the first."""
    rows = batch_size(batch)
    return lambda size, seed: take(batch, torch.arange(size) % rows)


def causal_mask(size: int, T: int) -> Tensor:
    """An additive mask (B, 1, T, T) that lets each token see those before it."""
    lowest = torch.finfo(torch.float32).min
    return torch.full((T, T), lowest).triu(1).expand(size, 1, T, T).contiguous()
