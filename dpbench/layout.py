"""Where the examples of a batch lie in a tensor.

Activations are (B, T, d), or sequence first (T, B, d), or folded (B T, d) as ``addmm`` sees them, or
(B windows, n, d) in window attention. All of these are one axis of size ``outer * B * inner`` in
which example b owns the entries ``(o, b, i)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class StructureChanged(Exception):
    """A forward is not the one that its plan was made for: another order of calls, or other axes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The examples lie on ``axis``, whose size is ``outer * B * inner``."""

    axis: int
    outer: int = 1
    inner: int = 1

    @property
    def rows(self) -> int:
        """How many entries of the axis belong to one example."""
        return self.outer * self.inner

    def fitted(self, size: int, batch: int) -> Layout:
        """This layout, if an axis of ``size`` can be one on which ``batch`` examples lie so.

        Raises:
            StructureChanged: if not. Where an example has more entries or fewer, they may lie elsewhere.
        """
        if size != self.rows * batch:
            raise StructureChanged
        return self

    def batch_first(self, tensor: Tensor, batch: int) -> Tensor:
        """Bring the examples to axis 0; an example's entries of a folded axis stay where the axis was.

        (..., outer B inner, ...) -> (B, ..., [outer inner,] ...), a view wherever strides allow.
        """
        if self.rows == 1:
            return tensor if self.axis == 0 else tensor.movedim(self.axis, 0)
        if self.outer == 1:
            split = torch.unflatten(tensor, self.axis, (batch, self.inner))
            return split if self.axis == 0 else split.movedim(self.axis, 0)
        split = torch.unflatten(tensor, self.axis, (self.outer, batch, self.inner)).movedim(self.axis + 1, 0)
        return split.flatten(self.axis + 1, self.axis + 2)

    def spread(self, tensor: Tensor, batch: int) -> Tensor:
        """Repeat what an example has once, (..., B, ...) on ``axis``, for all its entries of the axis."""
        if self.rows == 1:
            return tensor
        split = tensor.unsqueeze(self.axis + 1).unsqueeze(self.axis)
        sizes = [-1] * split.ndim
        sizes[self.axis], sizes[self.axis + 2] = self.outer, self.inner
        return split.expand(sizes).flatten(self.axis, self.axis + 2)

    def single(self, example: Tensor) -> Tensor:
        """Give one example of a batch-first tensor the shape that the function saw, with B = 1."""
        return example.unsqueeze(self.axis) if self.rows == 1 else example
