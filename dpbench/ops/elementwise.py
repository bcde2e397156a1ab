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


def asked_for(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], axis: int) -> int | None:
    """The size on ``axis`` that an expanding or repeating function was told to give; None for any other."""
    if function not in EXPANDING | REPEATING:
        return None
    told = args[1:] or tuple(kwargs.values())
    sizes = told[0].shape if isinstance(told[0], Tensor) else told[0] if isinstance(told[0], (tuple, list)) else told
    return int(sizes[axis])


def once(function: Callable[..., Any], args: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """Arguments of a repeating function that leave the batch's axis, already expanded, as it is."""
    if function not in REPEATING:
        return args
    sizes: Sequence[int] = args[1] if isinstance(args[1], (tuple, list, torch.Size)) else args[1:]
    return (args[0], *(1 if i == axis else n for i, n in enumerate(sizes)))
