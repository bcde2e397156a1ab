"""``F.embedding_bag`` of ids (B, T) as a lookup and a sum over T."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sum or mean of the rows of each bag; NotImplemented for bags of any length, for max, and for other options."""
    if input.ndim != 2 or mode not in ("sum", "mean") or max_norm is not None or scale_grad_by_freq or sparse:
        return NotImplemented
    rows = F.embedding(input, weight, padding_idx)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    counts: Any = input.shape[1]
    if padding_idx is not None:
        counted = input != padding_idx % weight.shape[0]
        rows = torch.where(counted[..., None], rows, torch.zeros_like(rows))
        counts = counted.sum(1, keepdim=True).clamp(min=1)
    total = rows.sum(1)
    return total if mode == "sum" else total / counts
