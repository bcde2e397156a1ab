"""Sums of squares that stay right over a hundred million elements and in low precision."""

from __future__ import annotations

import torch
from torch import Tensor

ROW = 4096
"""Longest row summed in one go: one float32 accumulator over 1e8 elements was 1.1 % too small."""


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The precision that norms of ``dtype`` tensors are accumulated in: float32 or wider."""
    return torch.promote_types(dtype, torch.float32)


def squared_norms(rows: Tensor) -> Tensor:
    """Squared Euclidean norm of each row of (B, ...), shape (B,), accumulated in float32 or wider."""
    if rows.numel() == 0:
        return rows.new_zeros(rows.shape[0], dtype=accumulator(rows.dtype))
    flat = rows.reshape(rows.shape[0], -1)
    dtype = accumulator(flat.dtype)
    whole = flat.shape[1] // ROW * ROW
    parts = []
    if whole:
        blocks = flat[:, :whole].unflatten(1, (-1, ROW))
        norms = torch.linalg.vector_norm(blocks, dim=-1, dtype=dtype)
        parts.append(torch.linalg.vector_norm(norms, dim=-1))
    if whole < flat.shape[1]:
        parts.append(torch.linalg.vector_norm(flat[:, whole:], dim=-1, dtype=dtype))
    total = parts[0].square()
    for part in parts[1:]:
        total = total + part.square()
    return total


def weighted(rows: Tensor, c: Tensor) -> Tensor:
    """``c_i rows_i`` for rows (B, ...) and factors c (B,), in the precision of the rows."""
    return rows * c.to(rows.dtype).reshape(-1, *([1] * (rows.ndim - 1)))


def weighted_sum(rows: Tensor, c: Tensor) -> Tensor:
    """``sum_i c_i rows_i`` (module 5) for rows (B, ...) and factors c (B,)."""
    return (c.to(rows.dtype) @ rows.reshape(rows.shape[0], -1)).reshape(rows.shape[1:])
