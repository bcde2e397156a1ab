"""``s = a W`` and its transposes: linear layers, matrix products, and all that can be brought to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.facts import Facts
from dpbench.numerics import accumulator, norms, weighted
from dpbench.ops.call import Call
from dpbench.ops.kept import Kept
from dpbench.ops.use import Use
from dpbench.ops.vector import Shift


def squared_gram_norm(a: Tensor, ds: Tensor) -> Tensor:
    """Ghost norm (module 3): ``||sum_t ds_t a_t^T||^2 = <a a^T, ds ds^T>``, shape (B,).

    a (B, T, d), ds (B, T, p). The two Grams cancel where activations hardly vary over T, so the
    result is clamped at zero. Source: Goodfellow 2015 (T = 1); Li et al. 2022, 2110.05679, eq. 4.
    """
    if a.shape[1] == 1:
        return (norms(a) * norms(ds)).square()
    products = torch.bmm(a, a.mT).to(accumulator(ds.dtype)).mul_(torch.bmm(ds, ds.mT))
    return products.sum((1, 2)).clamp_(min=0)


def product_sum(a: Tensor, ds: Tensor, c: Tensor) -> Tensor:
    """``sum_i c_i ds_i^T a_i``, shape (p, d): one product over batch and T, the factor on the smaller side."""
    if a.shape[2] < ds.shape[2]:
        a = weighted(a, c)
    else:
        ds = weighted(ds, c)
    if a.shape[1] == 1:
        return ds[:, 0].T @ a[:, 0]
    return ds.flatten(0, 1).T @ a.flatten(0, 1)


class Matrix(Use):
    """A weight of shape (p, d), or (d, p) if ``transposed``, applied to the last axis of ``a``."""

    ghostable: ClassVar[bool] = True

    def __init__(self, weight: Tensor, a: Tensor, *, transposed: bool = False, what: str = "a linear layer"):
        self.parameter = weight
        self.transposed = transposed
        self._a = Kept(a, what)

    def joined(self, ds: Tensor, examples: Tensor) -> tuple[Use, Tensor]:
        """T is then n times as long."""
        a = self._a.get()[examples]
        return Matrix(self.parameter, a, transposed=self.transposed), ds[examples]

    def pair(self, ds: Tensor) -> tuple[Tensor, Tensor]:
        """(a, ds) as (B, T, d) and (B, T, p)."""
        a = self._a.get()
        return _rows(a if a.dtype == ds.dtype else a.to(ds.dtype)), _rows(ds)

    def facts(self, ds: Tensor) -> Facts:
        """T is the product of all axes between the batch's and the last."""
        B, *middle, d = self._a.get().shape
        return Facts(rule="linear", B=B, T=prod(middle), d=d, p=ds.shape[-1])

    def instantiate(self, ds: Tensor) -> Tensor:
        """``g_i = ds_i^T a_i``."""
        a, ds = self.pair(ds)
        return torch.bmm(a.mT, ds) if self.transposed else torch.bmm(ds.mT, a)

    def squared_ghost_norm(self, ds: Tensor) -> Tensor:
        """Squared norms from the two Grams over T."""
        return squared_gram_norm(*self.pair(ds))

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """One matrix product over batch and T."""
        a, ds = self.pair(ds)
        return product_sum(ds, a, c) if self.transposed else product_sum(a, ds, c)


def _rows(x: Tensor) -> Tensor:
    """(B, ..., d) -> (B, T, d)."""
    if x.ndim == 3:
        return x
    return x.unsqueeze(1) if x.ndim == 2 else x.flatten(1, -2)


class Linear:
    """``F.linear(input, weight, bias)``."""

    functions: ClassVar[Sequence[Any]] = (F.linear,)
    signature: ClassVar[str] = "input, weight, bias=None"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The weight as a matrix, the bias as a shift of the last axis."""
        x, weight, bias = (call.arguments[k] for k in ("input", "weight", "bias"))
        if call.is_parameter("input") or weight.ndim != 2 or call.layouts["input"].axis == x.ndim - 1:
            return None
        if bias is not None and bias.shape != weight.shape[:1]:
            return None
        uses: list[Use] = []
        if call.is_parameter("weight"):
            uses.append(Matrix(weight, call.batch_first("input"), what="F.linear"))
        if bias is not None and call.is_parameter("bias"):
            uses.append(Shift(bias, axes=(-1,)))
        return uses


class Addmm:
    """``torch.addmm(bias, x, weight)``, which is how Hugging Face's Conv1D multiplies."""

    functions: ClassVar[Sequence[Any]] = (torch.addmm, Tensor.addmm)
    signature: ClassVar[str] = "input, mat1, mat2, beta=1, alpha=1, out=None"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The second matrix as a weight of shape (d, p)."""
        bias, weight = call.arguments["input"], call.arguments["mat2"]
        plain = call.arguments["beta"] == call.arguments["alpha"] == 1 and call.arguments["out"] is None
        if not plain or call.is_parameter("mat1") or "mat1" not in call.layouts or call.layouts["mat1"].axis != 0:
            return None
        uses: list[Use] = []
        if call.is_parameter("mat2"):
            uses.append(Matrix(weight, call.batch_first("mat1"), transposed=True, what="torch.addmm"))
        if call.is_parameter("input"):
            if bias.shape != weight.shape[1:]:
                return None
            uses.append(Shift(bias, axes=(-1,)))
        return uses


class Matmul:
    """``x @ W`` with a weight of two axes on the right."""

    functions: ClassVar[Sequence[Any]] = (
        torch.matmul, torch.mm, Tensor.matmul, Tensor.mm, Tensor.__matmul__,
    )  # fmt: skip
    signature: ClassVar[str] = "input, other=None, mat2=None, tensor2=None, out=None"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The right factor as a weight of shape (d, p)."""
        x, others = call.arguments["input"], [call.arguments[name] for name in ("other", "mat2", "tensor2")]
        (weight,) = (other for other in others if other is not None)
        if (
            call.is_parameter("input")
            or call.arguments["out"] is not None
            or weight.ndim != 2
            or x.ndim < 2
            or "input" not in call.layouts
        ):
            return None
        if call.layouts["input"].axis == x.ndim - 1:
            return None
        return [Matrix(weight, call.batch_first("input"), transposed=True, what="a matrix product")]


__all__ = ["Addmm", "Linear", "Matmul", "Matrix", "product_sum", "squared_gram_norm"]
