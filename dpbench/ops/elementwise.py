"""Bare parameters in elementwise functions: expanded over the batch before the function sees them.

``x + p`` is ``x + expand(p)`` with one copy of p for each example (stride 0, no memory), and the
gradient that autograd forms for the expanded tensor *is* the per-sample gradient. This holds for
every function that broadcasts its arguments, in place or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.layout import Layout


def _broadcasting() -> set[Callable[..., Any]]:
    names = (
        "add sub mul div true_divide pow rsub lerp addcmul addcdiv where maximum minimum fmod remainder atan2 "
        "logaddexp xlogy float_power hypot copysign"
    ).split()
    dunder = "add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv pow rpow ipow".split()
    found: set[Callable[..., Any]] = {F.scaled_dot_product_attention}
    for owner in (torch, Tensor):
        for name in (*names, *(f"{n}_" for n in names), *(f"__{n}__" for n in dunder)):
            if hasattr(owner, name):
                found.add(getattr(owner, name))
    return found


BROADCASTING = _broadcasting()
"""Functions whose arguments broadcast; the attention bias of scaled_dot_product_attention does, too."""

EXPANDING: set[Callable[..., Any]] = {
    Tensor.expand, Tensor.expand_as, torch.broadcast_to, Tensor.broadcast_to,
}  # fmt: skip
"""Functions that only expand, from one copy to one for each example."""

REPEATING: set[Callable[..., Any]] = {Tensor.repeat}
"""Functions that copy, as often as they are told for each axis."""


SPREADING = BROADCASTING | EXPANDING | REPEATING
"""Functions that may be given a parameter that was expanded over the batch."""


def can_spread(function: Callable[..., Any], parameter: Tensor, out: Layout, ndim: int) -> bool:
    """Whether a parameter broadcast against an output of ``ndim`` axes has one copy for all examples."""
    if function is F.scaled_dot_product_attention and out.axis >= ndim - 2:
        # Queries, keys and features are no axes to broadcast over.
        return False
    axis = out.axis - (ndim - parameter.ndim)
    return axis < 0 or parameter.shape[axis] == 1


def aligned(parameter: Tensor, out: Layout, ndim: int, batch: int) -> Tensor:
    """``parameter`` with the output's axes, expanded to B on the batch's: what autograd is to see."""
    view = parameter.reshape((1,) * (ndim - parameter.ndim) + tuple(parameter.shape))
    sizes = [-1] * ndim
    sizes[out.axis] = batch
    return view.expand(sizes)


def told(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[int]:
    """The sizes or numbers of copies that an expanding or repeating function was given, one for each axis."""
    values = args[1:] or tuple(kwargs.values())
    if isinstance(values[0], Tensor):
        return values[0].shape
    sizes: Sequence[int] = values[0] if isinstance(values[0], (tuple, list)) else values
    return sizes


def asked_for(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], axis: int) -> int | None:
    """The size on ``axis`` that an expanding or repeating function was told to give; None for any other."""
    return int(told(args, kwargs)[axis]) if function in EXPANDING | REPEATING else None


def once(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], axis: int) -> Any:
    """Arguments of a repeating function that leave the batch's axis, already expanded, as it is."""
    if function not in REPEATING:
        return args, kwargs
    return (args[0], *(1 if i == axis else n for i, n in enumerate(told(args, kwargs)))), {}


def can_repeat(copies: Sequence[int], out: Layout, batch: int) -> bool:
    """Whether each example has copies of its own, one after the other: p.repeat(B, 1, 1) of a (heads, ...) bias."""
    return out.outer == 1 and copies[out.axis] % batch == 0


def repeated(samples: Tensor, copies: Sequence[int], out: Layout, batch: int) -> Tensor:
    """Copies of (B, *parameter.shape), each example's own, laid out as ``parameter.repeat(copies)`` is."""
    own = [n // batch if i == out.axis else n for i, n in enumerate(copies)]
    view = samples.reshape(batch, *(1,) * (len(own) + 1 - samples.ndim), *samples.shape[1:])
    return view.repeat(1, *own).movedim(0, out.axis).flatten(out.axis, out.axis + 1)
