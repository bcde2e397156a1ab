"""Bytes that an operator reads and writes, where no cache keeps anything from one operator to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

aten = torch.ops.aten

NEW = ("empty", "new_empty", "resize_")
"""Operators, by the start of their names, that leave memory as it is."""

OVERWRITTEN = ("copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_")
"""In-place operators that do not read what they write to."""

ROWS = ("embedding", "index_select", "index", "gather", "_unsafe_index")
"""Operators that read of their first tensor what they give out, and no more."""

ADDED = ("index_add", "index_add_", "scatter_add_", "index_put_", "_index_put_impl_", "scatter_")
"""Operators that read and write of their first tensor as much as their last one holds."""


def traffic(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Bytes of one call: every tensor that is read, once, and every one that is written. Views move nothing."""
    name = function._overloadpacket.__name__
    given, made = _tensors((args, kwargs)), _tensors(out)
    if name.startswith(NEW):
        return 0
    storages = {t.untyped_storage()._cdata for t in given}
    fresh = [t for t in made if t.untyped_storage()._cdata not in storages]
    if not fresh and not function._schema.is_mutable:
        return 0
    if name in ROWS:
        return sum(map(touched, given[1:])) + 2 * sum(map(touched, fresh))
    if name in ADDED and not fresh:
        return sum(map(touched, given[1:])) + 2 * touched(given[-1])
    written = _written(function, args, kwargs)
    unread = {id(t) for t in written} if name in OVERWRITTEN else set()
    read = {id(t): t for t in given if id(t) not in unread}
    return sum(map(touched, [*read.values(), *written, *fresh]))


def touched(tensor: Tensor) -> int:
    """Bytes of the distinct elements of a tensor: an expanded axis is read once."""
    sizes = [n for n, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0]
    return prod(sizes) * tensor.element_size() if tensor.numel() else 0


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _written(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The arguments that the schema says are written to."""
    if not function._schema.is_mutable:
        return []
    found: list[Any] = []
    for i, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[i] if i < len(args) else kwargs.get(argument.name))
    return _tensors(found)


def halves(wanted: Iterable[bool]) -> list[list[bool]]:
    """A convolution's backward is two kernels, one for each gradient: their output masks, the bias with the second."""
    x, weight, bias = wanted
    return [mask for mask in ([x, False, False], [False, weight, bias]) if any(mask)]
