"""Small parameters, whose per-sample gradients are instantiated whatever the algorithm: (B, size)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dpbench.ops.use import Use


def reduce_to(x: Tensor, axes: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Sum (B, ...) over all axes but the batch's and ``axes``, shape (B, *shape)."""
    kept = {axis % x.ndim for axis in axes} | {0}
    others = [axis for axis in range(x.ndim) if axis not in kept]
    return (x.sum(others) if others else x).reshape(x.shape[0], *shape)


class Shift(Use):
    """A bias that is added along ``axes`` of the output: ``g_i`` sums ``ds_i`` over the others."""

    def __init__(self, bias: Tensor, *, axes: Sequence[int]) -> None:
        self.parameter = bias
        self._axes = axes

    def instantiate(self, ds: Tensor) -> Tensor:
        """``g_i = sum_t ds_it``."""
        return reduce_to(ds, self._axes, self.parameter.shape)


class Given(Use):
    """A bare parameter that was expanded over the batch: its output gradient is ``g_i`` itself."""

    def __init__(self, parameter: Tensor) -> None:
        self.parameter = parameter

    def instantiate(self, ds: Tensor) -> Tensor:
        """(B, ..., size-one axes) -> (B, *shape)."""
        return ds.reshape(ds.shape[0], *self.parameter.shape)
