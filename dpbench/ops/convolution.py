"""Convolutions of one, two and three dimensions, with groups, stride, dilation and 'same' padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.facts import Facts
from dpbench.numerics import accumulator, weighted
from dpbench.ops.call import Call
from dpbench.ops.kept import Kept
from dpbench.ops.use import Use
from dpbench.ops.vector import Shift

CACHE = 1 << 24
"""Elements of a Gram that are worked on at a time: larger temporaries cost page faults, twofold."""


class Convolution(Use):
    """A kernel (p, C / groups, *k) over x (B, C, *pixels): ``s = unfold(x) W`` with d = C / groups x prod(k)."""

    ghostable: ClassVar[bool] = True

    def __init__(
        self,
        weight: Tensor,
        x: Tensor,
        *,
        stride: Sequence[int],
        padding: Sequence[tuple[int, int]],
        dilation: Sequence[int],
        groups: int,
    ) -> None:
        self.parameter = weight
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self._x = Kept(x, f"F.conv{len(stride)}d")

    def facts(self, ds: Tensor) -> Facts:
        """T is the number of output positions."""
        p = self.parameter.shape[0]
        T, d = prod(ds.shape[2:]), prod(self.parameter.shape[1:])
        return Facts(rule="convolution", B=ds.shape[0], T=T, d=d, p=p, groups=self.groups)

    def _padded(self, dtype: torch.dtype) -> Tensor:
        x = self._x.get().to(dtype)
        if not any(map(any, self.padding)):
            return x
        return F.pad(x, [n for pair in reversed(self.padding) for n in pair])

    def _window(self, offset: Sequence[int], out: Sequence[int]) -> list[slice]:
        """The padded pixels that meet the kernel's element at ``offset``, one for each output position."""
        return [
            slice(o * dil, o * dil + s * (n - 1) + 1, s)
            for o, dil, s, n in zip(offset, self.dilation, self.stride, out, strict=True)
        ]

    def _offsets(self) -> list[tuple[int, ...]]:
        return list(product(*(range(k) for k in self.parameter.shape[2:])))

    def unfolded(self, ds: Tensor) -> tuple[Tensor, Tensor]:
        """a (B groups, d, T) and ds (B groups, p / groups, T)."""
        x, out, G = self._padded(ds.dtype), ds.shape[2:], self.groups
        windows = [x[(..., *self._window(offset, out))] for offset in self._offsets()]
        a = torch.stack(windows, 2).reshape(x.shape[0] * G, -1, prod(out))
        return a, ds.reshape(x.shape[0] * G, -1, prod(out))

    def instantiate(self, ds: Tensor) -> Tensor:
        """The library's own weight gradient, one example at a time."""
        x = self._padded(ds.dtype)
        return torch.stack([self._library(x[i : i + 1], ds[i : i + 1]) for i in range(x.shape[0])])

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """The library's own weight gradient of the weighted batch."""
        x = self._padded(ds.dtype)
        if x.numel() < ds.numel():
            return self._library(weighted(x, c), ds)
        return self._library(x, weighted(ds, c))

    def _library(self, x: Tensor, ds: Tensor) -> Tensor:
        n = len(self.stride)
        weight = self.parameter.to(ds.dtype)
        gradients = torch.ops.aten.convolution_backward(
            ds, x, weight, None, self.stride, [0] * n, self.dilation, False, [0] * n, self.groups,
            [False, True, False],
        )  # fmt: skip
        gradient = gradients[1]
        assert isinstance(gradient, Tensor)
        return gradient

    def ghost_norm(self, ds: Tensor) -> Tensor:
        """Squared norms from Grams over the output positions, the cheaper of two ways to the first."""
        T, d = prod(ds.shape[2:]), prod(self.parameter.shape[1:])
        pixels = prod(n + a + b for n, (a, b) in zip(self._x.get().shape[2:], self.padding, strict=True))
        channels, taps = self.parameter.shape[1], prod(self.parameter.shape[2:])
        if pixels**2 * channels + T**2 * taps < T**2 * d:
            return self._norm_by_pixels(ds, pixels)
        a, ds_ = self.unfolded(ds)
        norms = torch.empty(a.shape[0], dtype=accumulator(ds.dtype), device=ds.device)
        step = max(1, CACHE // T**2)
        for i in range(0, a.shape[0], step):
            norms[i : i + step] = _inner(a[i : i + step], ds_[i : i + step])
        return norms.unflatten(0, (-1, self.groups)).sum(1).clamp_(min=0)

    def _norm_by_pixels(self, ds: Tensor, pixels: int) -> Tensor:
        """One Gram of the pixels; the patches' Gram is the sum of its blocks shifted by each offset.

        ``<a_t, a_u> = sum_k <x_{t+k}, x_{u+k}>``: k^2 times fewer products than unfolding first.
        """
        x, out, G = self._padded(ds.dtype), ds.shape[2:], self.groups
        size = x.shape[2:]
        flat = x.reshape(x.shape[0] * G, -1, pixels)
        ds = ds.reshape(flat.shape[0], -1, prod(out))
        norms = torch.empty(flat.shape[0], dtype=accumulator(ds.dtype), device=ds.device)
        step = max(1, CACHE // pixels**2)
        for i in range(0, flat.shape[0], step):
            block = flat[i : i + step]
            gram = torch.bmm(block.mT, block).unflatten(2, size).unflatten(1, size)
            windows = [self._window(offset, out) for offset in self._offsets()]
            total = gram[(slice(None), *windows[0], *windows[0])].clone(memory_format=torch.contiguous_format)
            for window in windows[1:]:
                total += gram[(slice(None), *window, *window)]
            part = ds[i : i + step]
            products = total.reshape(part.shape[0], -1).to(norms.dtype)
            norms[i : i + step] = (products * torch.bmm(part.mT, part).flatten(1)).sum(1)
        return norms.unflatten(0, (-1, G)).sum(1).clamp_(min=0)


def _inner(a: Tensor, ds: Tensor) -> Tensor:
    """``<a^T a, ds^T ds>`` for a (N, d, T), ds (N, p, T)."""
    products = torch.bmm(a.mT, a).to(accumulator(ds.dtype)).mul_(torch.bmm(ds.mT, ds))
    return products.sum((1, 2))


class Conv:
    """``F.conv1d``, ``F.conv2d``, ``F.conv3d``."""

    functions: ClassVar[Sequence[Any]] = (
        F.conv1d, F.conv2d, F.conv3d, torch.conv1d, torch.conv2d, torch.conv3d,
    )  # fmt: skip
    signature: ClassVar[str] = "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The kernel, and the bias as a shift of the channels."""
        x, weight, bias = (call.arguments[k] for k in ("input", "weight", "bias"))
        layout = call.layouts.get("input")
        n = weight.ndim - 2
        if layout is None or layout.axis != 0 or layout.rows != 1 or x.ndim != n + 2:
            return None
        stride, dilation = (_each(call.arguments[k], n) for k in ("stride", "dilation"))
        uses: list[Use] = []
        if call.is_parameter("weight"):
            padding = _padding(call.arguments["padding"], weight.shape[2:], dilation)
            groups = call.arguments["groups"]
            uses.append(
                Convolution(weight, x, stride=stride, padding=padding, dilation=dilation, groups=groups)
            )
        if bias is not None and call.is_parameter("bias"):
            uses.append(Shift(bias, axes=(1,)))
        return uses


def _each(value: int | Sequence[int], n: int) -> list[int]:
    if isinstance(value, int):
        return [value] * n
    return list(value) * (n if len(value) == 1 else 1)


def _padding(value: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    if value == "valid":
        return [(0, 0)] * len(kernel)
    if value == "same":
        totals = [dil * (k - 1) for k, dil in zip(kernel, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(n, n) for n in _each(value, len(kernel))]
