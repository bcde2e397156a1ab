"""Contractions of one parameter with one activation as a matrix product: einsum, tensordot, ``W @ x``.

The letters of ``btd,dhk->bthk`` are those that both have and the result has not (d, summed over), those of
the parameter and the result (h k), and those of the activation and the result (b t). Where there are no
others, it is ``s = a W`` with a (..., d) and W (d, h k).
"""

from __future__ import annotations

from math import prod
from string import ascii_letters
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def einsum(*args: Any) -> Any:
    """``torch.einsum(equation, x, y)``, one of them a parameter; NotImplemented where it is no matrix product."""
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not isinstance(equation, str) or len(operands) != 2:
        return NotImplemented
    terms, _, out = equation.replace(" ", "").partition("->")
    left, comma, right = terms.partition(",")
    if not comma or "->" not in equation:
        return NotImplemented
    return _contracted(left, operands[0], right, operands[1], out)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Any:
    """``torch.tensordot``, one of its operands a parameter."""
    if isinstance(dims, Tensor) or out is not None:
        return NotImplemented
    if isinstance(dims, int):
        dims = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    axes = [[axes] if isinstance(axes, int) else list(axes) for axes in dims]
    first = list(ascii_letters[: a.ndim])
    second = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(*axes, strict=True):
        second[j] = first[i]
    result = [letter for letter in (*first, *second) if (letter in first) != (letter in second)]
    return _contracted("".join(first), a, "".join(second), b, "".join(result))


def matmul(*args: Any, **kwargs: Any) -> Any:
    """``W @ x`` with a parameter (p, d) on the left of x (..., d, n); a product with it on the right has a rule."""
    if kwargs or not isinstance(args[0], nn.Parameter):
        return NotImplemented
    weight, x = args
    if weight.ndim != 2 or x.ndim < 3:
        return NotImplemented
    return F.linear(x.transpose(-1, -2), weight).transpose(-1, -2)


def _contracted(left: str, a: Tensor, right: str, b: Tensor, out: str) -> Any:
    if isinstance(a, nn.Parameter) == isinstance(b, nn.Parameter):
        return NotImplemented
    x, xs, weight, ws = (b, right, a, left) if isinstance(a, nn.Parameter) else (a, left, b, right)
    if "..." in xs and "..." in out:
        unused = [letter for letter in ascii_letters if letter not in left + right + out]
        rest = "".join(unused[: x.ndim - len(xs) + 3])
        xs, out = xs.replace("...", rest), out.replace("...", rest)
    summed, kept = [c for c in ws if c not in out], [c for c in ws if c in out]
    positions = [c for c in xs if c not in summed]
    alone = all(len(set(term)) == len(term) and term.isalpha() for term in (xs, ws, out))
    plain = set(summed) <= set(xs) and not set(kept) & set(xs) and set(out) == {*positions, *kept}
    if not (alone and plain and summed and positions):
        return NotImplemented
    size = dict(zip(xs, x.shape, strict=True)) | dict(zip(ws, weight.shape, strict=True))
    if any(size[c] != n for c, n in zip(xs, x.shape, strict=True)):
        # One of the two is broadcast along the letter.
        return NotImplemented
    rows = _ordered(x, xs, [*positions, *summed]).flatten(len(positions))
    d, p = prod(size[c] for c in summed), prod(size[c] for c in kept)
    if [*summed, *kept] == list(ws):
        product = torch.matmul(rows, weight if weight.shape == (d, p) and len(ws) == 2 else weight.reshape(d, p))
    else:
        matrix = _ordered(weight, ws, [*kept, *summed])
        product = F.linear(rows, matrix if len(ws) == 2 else matrix.reshape(p, d))
    shaped = torch.unflatten(product, -1, [size[c] for c in kept]) if kept else product.squeeze(-1)
    return _ordered(shaped, "".join([*positions, *kept]), list(out))


def _ordered(x: Tensor, letters: str, order: list[str]) -> Tensor:
    """``x`` with its axes, called ``letters``, in another order."""
    return x if list(letters) == order else x.permute([letters.index(c) for c in order])
