"""Bytes that an operator reads and writes, where no cache keeps anything from one operator to the next."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from torch import Tensor

NEW = ("empty", "new_empty", "resize_")
"""Operators, by the start of their names, that leave memory as it is."""

LIKE = re.compile(r"^new_|_like$")
"""Operators that take from their first tensor no more than its shape."""

OVERWRITING = re.compile(
    r"^(_foreach_)?(copy|zero|fill|normal|uniform|bernoulli|random|exponential|\w+_normal|cauchy|geometric)_$"
)
"""Operators that do not read what they write to."""

ROWS = ("embedding", "index_select", "index", "gather", "_unsafe_index")
"""Operators that read of their first tensor what they give out, and no more."""


def traffic(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], given: Sequence[Tensor], made: Sequence[Tensor]
) -> int:
    """Bytes of one call: every tensor that is read, once, and every one that is written. Views move nothing.

    ``given`` and ``made`` are the tensors in its arguments, in their order, and in its result.
    """
    name = function._overloadpacket.__name__
    if name.startswith(NEW):
        return 0
    storages = {t.untyped_storage()._cdata for t in given}
    fresh = [t for t in made if t.untyped_storage()._cdata not in storages]
    if not fresh and not function._schema.is_mutable:
        return 0
    if name in PARTLY and not (fresh and name.endswith("_")):
        return PARTLY[name](args, fresh)
    if name in ROWS:
        return _bytes(given[1:]) + 2 * _bytes(fresh)
    written = _written(function, args, kwargs)
    unread = {id(t) for t in written} if OVERWRITING.search(name) else {id(t) for t in tensors(kwargs.get("out"))}
    if LIKE.search(name):
        unread.add(id(given[0]))
    read = {id(t): t for t in given if id(t) not in unread}
    return _bytes([*read.values(), *written, *fresh])


def _places(args: Sequence[Any], fresh: Sequence[Tensor]) -> int:
    """``index_add_``, ``scatter_``: what is added is read, and its places in the table are read and written."""
    table, _, index, *source = args
    added = source[0] if source and isinstance(source[0], Tensor) else index
    return int(_bytes(tensors((index, source))) + 2 * added.numel() * table.element_size())


def _rows(args: Sequence[Any], fresh: Sequence[Tensor]) -> int:
    """``index_fill_``, ``index_copy_``: rows are written."""
    table, dim, index, *source = args
    rows = index.numel() * table.numel() // max(table.shape[dim], 1)
    return int(_bytes(tensors((index, source))) + rows * table.element_size())


def _put(args: Sequence[Any], fresh: Sequence[Tensor]) -> int:
    """``index_put_``: the places that are picked are written, and read where they are added to."""
    table, indices, values, *accumulate = args
    picked = [i for i in indices if i is not None]
    rest = prod(n for n, i in zip(table.shape, [*indices, *[None] * table.ndim], strict=False) if i is None)
    places = max((i.numel() for i in picked), default=1) * rest * table.element_size()
    return int(_bytes([*picked, values]) + places * (2 if any(accumulate) else 1))


def _picked(args: Sequence[Any], fresh: Sequence[Tensor]) -> int:
    """``nll_loss_forward``: one class of each row is read."""
    scores, target, *_ = args
    return int(target.numel() * scores.element_size() + _bytes([target, *fresh]))


def _spread(args: Sequence[Any], fresh: Sequence[Tensor]) -> int:
    """``nll_loss_backward``: the scores give no more than their shape."""
    ds, _, target, *_ = args
    return _bytes([ds, target, *fresh])


PARTLY: Mapping[str, Callable[[Sequence[Any], Sequence[Tensor]], int]] = {
    "index_add_": _places,
    "scatter_": _places,
    "scatter_add_": _places,
    "index_fill_": _rows,
    "index_copy_": _rows,
    "index_put_": _put,
    "_index_put_impl_": _put,
    "nll_loss_forward": _picked,
    "nll_loss2d_forward": _picked,
    "nll_loss_backward": _spread,
    "nll_loss2d_backward": _spread,
}
"""Operators that touch a part of what they are given."""


def touched(tensor: Tensor) -> int:
    """Bytes of the distinct elements of a tensor: an expanded axis is read once."""
    sizes = [n for n, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0]
    return prod(sizes) * tensor.element_size() if tensor.numel() else 0


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(map(touched, tensors))


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in arguments or results: these are tensors, lists and dictionaries of them, and other values."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if not isinstance(tree, list | tuple):
        return []
    found = []
    for value in tree:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple | dict):
            found += tensors(value)
    return found


def _written(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The arguments that the schema says are written to."""
    if not function._schema.is_mutable:
        return []
    found: list[Any] = []
    for i, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[i] if i < len(args) else kwargs.get(argument.name))
    return tensors(found)


def halves(wanted: Iterable[bool]) -> list[list[bool]]:
    """A convolution's backward is two kernels, one for each gradient: their output masks, the bias with the second."""
    x, weight, bias = wanted
    return [mask for mask in ([x, False, False], [False, weight, bias]) if any(mask)]
