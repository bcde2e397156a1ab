"""Transposed convolutions: convolutions in which the input and the output gradient have changed places."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.facts import Facts
from dpbench.ops.call import Call
from dpbench.ops.convolution import Convolution, each, is_batch_first
from dpbench.ops.kept import Kept
from dpbench.ops.use import Use
from dpbench.ops.vector import Shift


class TransposedConvolution(Use):
    """A kernel (C, p / groups, *k) that spreads x (B, C, *pixels): the convolution of ``ds`` that gives 2a.

    ``<ds, conv_transpose(x, W)> = <conv(ds, W), x>``, so that norms and sums are those of a convolution
    whose input is the output gradient and whose output gradient is the input; T counts the pixels of x.
    """

    ghostable: ClassVar[bool] = True

    def __init__(
        self,
        weight: Tensor,
        x: Tensor,
        *,
        stride: Sequence[int],
        padding: Sequence[int],
        output_padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        together: int = 1,
    ) -> None:
        """``together``: how many images, one after the other, are one example."""
        self.parameter = weight
        self._stride, self._dilation, self._groups, self._together = stride, dilation, groups, together
        # Of the output, which has more pixels at its ends than a convolution would reach.
        self._padding = [(n, n - more) for n, more in zip(padding, output_padding, strict=True)]
        self._x = Kept(x, f"F.conv_transpose{len(stride)}d")

    def _of(self, ds: Tensor) -> Convolution:
        """The convolution of ``ds``, which has the input in the place of its output gradient."""
        stride, padding, dilation = self._stride, self._padding, self._dilation
        return Convolution(
            self.parameter, ds, stride=stride, padding=padding, dilation=dilation, groups=self._groups,
            together=self._together,
        )  # fmt: skip

    def joined(self, ds: Tensor, examples: Tensor) -> tuple[Use, Tensor]:
        """The positions of n images are those of one example."""
        order = examples.flatten()
        use = copy.copy(self)
        use._x = Kept(self._x.get()[order], f"F.conv_transpose{len(self._stride)}d")
        use._together = examples.shape[1]
        return use, ds[order]

    def facts(self, ds: Tensor) -> Facts:
        """T is the number of input positions, d the features of one kernel's output, p the input channels."""
        return self._of(ds).facts(self._x.get())

    def instantiate(self, ds: Tensor) -> Tensor:
        """``g_i = x_i unfold(ds_i)^T``."""
        return self._of(ds).instantiate(self._x.get().to(ds.dtype))

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """The library's own weight gradient of the weighted input."""
        return self._of(ds).weighted_sum(self._x.get().to(ds.dtype), c)

    def squared_ghost_norm(self, ds: Tensor) -> Tensor:
        """Squared norms from Grams over the input positions."""
        return self._of(ds).squared_ghost_norm(self._x.get().to(ds.dtype))


class ConvTranspose:
    """``F.conv_transpose1d``, ``F.conv_transpose2d``, ``F.conv_transpose3d``."""

    functions: ClassVar[Sequence[Any]] = (
        F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d,
        torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d,
    )  # fmt: skip
    signature: ClassVar[str] = (
        "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"
    )  # fmt: skip

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The kernel, and the bias as a shift of the channels."""
        x, weight, bias = (call.arguments[k] for k in ("input", "weight", "bias"))
        n = weight.ndim - 2
        if not is_batch_first(call, n):
            return None
        uses: list[Use] = []
        if call.is_parameter("weight"):
            names = ("stride", "padding", "output_padding", "dilation")
            sizes: dict[str, Any] = {name: each(call.arguments[name], n) for name in names}
            uses.append(TransposedConvolution(weight, x, groups=call.arguments["groups"], **sizes))
        if bias is not None and call.is_parameter("bias"):
            uses.append(Shift(bias, axes=(1,)))
        return uses
