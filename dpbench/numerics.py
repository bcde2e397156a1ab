"""Sums of squares that stay right over a hundred million elements and in low precision."""

from __future__ import annotations

import torch
from torch import Tensor

ROW = 4096
"""Longest row summed in one go: one float32 accumulator over 1e8 elements was 1.1 % too small."""


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The precision that norms of ``dtype`` tensors are accumulated in: float32 or wider."""
    return torch.promote_types(dtype, torch.float32)


def norms(rows: Tensor) -> Tensor:
    """Euclidean norm of each row of (B, ...), shape (B,), accumulated in float32 or wider."""
    dtype = accumulator(rows.dtype)
    flat = rows if rows.ndim == 2 else rows.reshape(rows.shape[0], -1)
    width = flat.shape[1]
    if width <= ROW:
        row: Tensor = torch.linalg.vector_norm(flat, dim=-1, dtype=dtype)
        return row
    whole = width // ROW * ROW
    blocks = torch.unflatten(flat[:, :whole], 1, (-1, ROW))
    parts = torch.linalg.vector_norm(blocks, dim=-1, dtype=dtype)
    if whole < width:
        rest = torch.linalg.vector_norm(flat[:, whole:], dim=-1, keepdim=True, dtype=dtype)
        parts = torch.cat([parts, rest], 1)
    return norms(parts)


def squared_norms(rows: Tensor) -> Tensor:
    """Squared Euclidean norm of each row of (B, ...), shape (B,)."""
    if rows.numel() == 0:
        return rows.new_zeros(rows.shape[0], dtype=accumulator(rows.dtype))
    return norms(rows).square()


def factors(c: Tensor, dtype: torch.dtype) -> Tensor:
    """``c`` in another precision, rounded towards zero: a factor rounded up would let ``||C g||`` exceed R."""
    if dtype == c.dtype:
        return c
    cast = c.to(dtype)
    return torch.where(cast.to(c.dtype) > c, cast * (1 - torch.finfo(dtype).eps), cast)


def weighted(rows: Tensor, c: Tensor) -> Tensor:
    """``c_i rows_i`` for rows (B, ...) and factors c (B,), in the precision of the rows."""
    return rows * factors(c, rows.dtype).reshape(-1, *([1] * (rows.ndim - 1)))


def weighted_sum(rows: Tensor, c: Tensor) -> Tensor:
    """``sum_i c_i rows_i`` (module 5) for rows (B, ...) and factors c (B,)."""
    c = factors(c, rows.dtype)
    return c @ rows if rows.ndim == 2 else (c @ rows.reshape(rows.shape[0], -1)).reshape(rows.shape[1:])
