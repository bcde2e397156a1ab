"""Convolutions of one, two and three dimensions, with groups, stride, dilation and 'same' padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from dpbench.ops.matrix import squared_gram_norm
from dpbench.ops.use import Use
from dpbench.ops.vector import Shift

CACHE = 1 << 24
"""Elements of a Gram that are worked on at a time: larger temporaries cost page faults, twofold."""

MOVE = 16
"""What moving one element costs in multiply-adds of a matrix product, about, on the CPUs tried."""

MANY_POSITIONS = 1024
"""Above this T, unfolding costs more than one call of the library for each example."""


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
        together: int = 1,
    ) -> None:
        """``together``: so many rows of x, one after the other, are one example."""
        self.parameter = weight
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self._together = together
        self._x = Kept(x, f"F.conv{len(stride)}d")

    def joined(self, ds: Tensor, examples: Tensor) -> tuple[Use, Tensor]:
        """The positions of n images are those of one example."""
        order = examples.flatten()
        use = Convolution(
            self.parameter, self._x.get()[order], stride=self.stride, padding=self.padding, dilation=self.dilation,
            groups=self.groups, together=examples.shape[1],
        )  # fmt: skip
        return use, ds[order]

    def facts(self, ds: Tensor) -> Facts:
        """T is the number of output positions."""
        p, channels = self.parameter.shape[:2]
        B, T, d = ds.shape[0], prod(ds.shape[2:]), prod(self.parameter.shape[1:])
        facts = Facts(rule="convolution", B=B, T=T, d=d, p=p, groups=self.groups)
        if T == 1:
            return replace(facts, instantiation_flops=0)
        pixels = self._pixels_of_gram(T)
        if pixels is None:
            return facts
        return replace(facts, norm_flops=2 * B * (pixels**2 * self.groups * channels + T**2 * p))

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
        x, out = self._padded(ds.dtype), ds.shape[2:]
        windows = [x[(slice(None), slice(None), *self._window(offset, out))] for offset in self._offsets()]
        a = (windows[0].unsqueeze(2) if len(windows) == 1 else torch.stack(windows, 2)).flatten(3)
        return self._by_group(a, a.shape[-1]), self._by_group(ds, a.shape[-1])

    def _by_group(self, x: Tensor, positions: int) -> Tensor:
        """(rows, channels, ..., *positions) -> (B groups, channels / groups x ..., T)."""
        split = x.reshape(x.shape[0] * self.groups, -1, positions)
        if self._together == 1:
            return split
        apart = torch.unflatten(split, 0, (-1, self._together, self.groups))
        return apart.permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(2)

    def instantiate(self, ds: Tensor) -> Tensor:
        """``g_i = ds_i unfold(x_i)^T``; over many positions the library's weight gradient, example by example."""
        n = self._together
        if prod(ds.shape[2:]) > MANY_POSITIONS:
            return torch.stack([self._library(ds[i : i + n], slice(i, i + n)) for i in range(0, ds.shape[0], n)])
        a, ds = self.unfolded(ds)
        g = ds * a.mT if a.shape[2] == 1 else torch.bmm(ds, a.mT)
        return g.reshape(-1, *self.parameter.shape)

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """The library's own weight gradient of the weighted ``ds``; one matrix product where T = 1."""
        ds = weighted(ds, c)
        if prod(ds.shape[2:]) == 1 and self.groups == 1:
            a, ds = self.unfolded(ds)
            return (ds[:, :, 0].T @ a[:, :, 0]).reshape(self.parameter.shape)
        return self._library(ds, slice(None))

    def _library(self, ds: Tensor, examples: slice) -> Tensor:
        n = len(self.stride)
        symmetric = all(before == after for before, after in self.padding)
        x = (self._x.get().to(ds.dtype) if symmetric else self._padded(ds.dtype))[examples]
        padding = [before for before, _ in self.padding] if symmetric else [0] * n
        gradients = torch.ops.aten.convolution_backward(
            ds, x, self.parameter.to(ds.dtype), None, self.stride, padding, self.dilation, False, [0] * n,
            self.groups, [False, True, False],
        )  # fmt: skip
        gradient = gradients[1]
        assert isinstance(gradient, Tensor)
        return gradient

    def squared_ghost_norm(self, ds: Tensor) -> Tensor:
        """Squared norms from Grams over the output positions, the first by the cheaper of two ways."""
        T = self._together * prod(ds.shape[2:])
        if pixels := self._pixels_of_gram(T):
            return self._norm_by_pixels(ds, pixels)
        a, ds = self.unfolded(ds)
        step = max(1, CACHE // T**2)
        blocks = [squared_gram_norm(a[i : i + step].mT, ds[i : i + step].mT) for i in range(0, len(a), step)]
        return torch.cat(blocks).reshape(-1, self.groups).sum(1)

    def _pixels_of_gram(self, T: int) -> int | None:
        """The number of padded pixels, where one Gram of them is cheaper than one of T unfolded patches."""
        channels, taps = self.parameter.shape[1], prod(self.parameter.shape[2:])
        sizes = (n + a + b for n, (a, b) in zip(self._x.get().shape[2:], self.padding, strict=True))
        pixels = self._together * prod(sizes)
        by_pixels = pixels**2 * channels + MOVE * (pixels**2 + T**2 * taps)
        by_unfolding = T**2 * channels * taps + MOVE * T * channels * taps
        return pixels if T > 1 and by_pixels < by_unfolding else None

    def _norm_by_pixels(self, ds: Tensor, pixels: int) -> Tensor:
        """One Gram of the pixels; the patches' Gram is the sum of its blocks shifted by each offset.

        ``<a_t, a_u> = sum_k <x_{t+k}, x_{u+k}>``: k^2 times fewer products than unfolding first.
        """
        x, out, n = self._padded(ds.dtype), ds.shape[2:], self._together
        size = x.shape[2:]
        flat, ds = self._by_group(x, prod(size)), self._by_group(ds, prod(out))
        norms = torch.empty(flat.shape[0], dtype=accumulator(ds.dtype), device=ds.device)
        step = max(1, CACHE // pixels**2)
        for i in range(0, flat.shape[0], step):
            block = flat[i : i + step]
            gram = torch.bmm(block.mT, block).reshape(-1, n, *size, n, *size)
            windows = [[slice(None), *self._window(offset, out)] for offset in self._offsets()]
            total = gram[(slice(None), *windows[0], *windows[0])].clone(memory_format=torch.contiguous_format)
            for window in windows[1:]:
                total += gram[(slice(None), *window, *window)]
            part = ds[i : i + step]
            products = total.reshape(part.shape[0], -1).to(norms.dtype)
            norms[i : i + step] = (products * torch.bmm(part.mT, part).flatten(1)).sum(1)
        return norms.reshape(-1, self.groups).sum(1).clamp_(min=0)


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
        n = weight.ndim - 2
        if not is_batch_first(call, n):
            return None
        stride, dilation = (each(call.arguments[k], n) for k in ("stride", "dilation"))
        uses: list[Use] = []
        if call.is_parameter("weight"):
            padding = _padding(call.arguments["padding"], weight.shape[2:], dilation)
            groups = call.arguments["groups"]
            uses.append(Convolution(weight, x, stride=stride, padding=padding, dilation=dilation, groups=groups))
        if bias is not None and call.is_parameter("bias"):
            uses.append(Shift(bias, axes=(1,)))
        return uses


def is_batch_first(call: Call, pixels: int) -> bool:
    """Whether the input is (B, C, *pixels), with nothing folded into B."""
    layout = call.layouts.get("input")
    return (
        layout is not None and layout.axis == 0 and layout.rows == 1 and call.arguments["input"].ndim == pixels + 2
    )  # fmt: skip


def each(value: int | Sequence[int], n: int) -> list[int]:
    """A size for each of ``n`` dimensions."""
    if isinstance(value, int):
        return [value] * n
    return list(value) * (n if len(value) == 1 else 1)


def _padding(value: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    if value == "valid":
        return [(0, 0)] * len(kernel)
    if value == "same":
        totals = [dil * (k - 1) for k, dil in zip(kernel, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(n, n) for n in each(value, len(kernel))]
