"""Functions that may change which example an entry belongs to, or give examples different shares.

Whether they did depends on values, and is looked at in every forward: a mask that keeps two tokens of
each example leaves everybody in their place, one that keeps three of one and one of another does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


class Order(IntEnum):
    """What became of the examples' entries."""

    KEPT = 0
    DOUBTFUL = 1
    """Numbers of entries that differ between examples: no more can be folded into one axis with them."""
    LOST = 2
    """Entries of one example lie where those of another would."""


_COUNTING = {torch.nonzero, Tensor.nonzero, torch.argwhere, Tensor.argwhere, torch.where}
_PICKING = {torch.index_select, Tensor.index_select, torch.gather, Tensor.gather}
_MERGING = {torch.unique, Tensor.unique, torch.unique_consecutive, Tensor.unique_consecutive}
_REPEATING = {torch.repeat_interleave, Tensor.repeat_interleave}
_MASKING = {torch.masked_select, Tensor.masked_select}
_PACKING = {torch._C._VariableFunctions._pack_padded_sequence}

_INDEXING: set[Callable[..., Any]] = {Tensor.__getitem__}

SELECTING = frozenset(_INDEXING | _COUNTING | _PICKING | _MERGING | _REPEATING | _MASKING | _PACKING)


def order(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], batch: int) -> Order:
    """What one call of a function in ``SELECTING`` does to the order of ``batch`` examples."""
    if any(isinstance(value, FakeTensor) for value in args):
        return Order.KEPT
    if function is Tensor.__getitem__:
        index = args[1][0] if isinstance(args[1], tuple) and args[1] else args[1]
        return _indexed(args[0], index, batch) if isinstance(index, Tensor) else Order.KEPT
    if function in _MASKING:
        mask = kwargs.get("mask", args[-1])
        return _shares(mask.expand_as(args[0]) if mask.ndim <= args[0].ndim else mask, batch)
    if function in _PICKING:
        return _picked(args[0], args[1:], kwargs, batch)
    if function in _COUNTING and len(args) + len(kwargs) == 1:
        return min(_shares(args[0] != 0, batch), Order.DOUBTFUL)
    if function in _PACKING:
        return Order.KEPT if bool((args[1] == batch).all()) else Order.LOST
    repeats = kwargs.get("repeats", args[1] if len(args) > 1 else None)
    if function in _REPEATING and isinstance(repeats, Tensor):
        return Order.KEPT if bool((repeats == repeats.flatten()[:1]).all()) else Order.LOST
    return Order.DOUBTFUL if function in _MERGING else Order.KEPT


def _indexed(source: Tensor, index: Tensor, batch: int) -> Order:
    """Of ``source[index]`` and ``source[index, ...]``."""
    if index.dtype in (torch.bool, torch.uint8):
        return _shares(index, batch)
    return _in_place(index, batch) if source.shape[:1] == (batch,) else Order.KEPT


def _picked(source: Tensor, args: tuple[Any, ...], kwargs: Mapping[str, Any], batch: int) -> Order:
    """Of ``index_select`` and ``gather`` along the first axis."""
    values = [*args, *kwargs.values()]
    dim = next((value for value in values if isinstance(value, int)), None)
    index = next((value for value in values if isinstance(value, Tensor)), None)
    if index is None or dim not in (0, -source.ndim) or source.shape[0] != batch:
        return Order.KEPT
    return _in_place(index, batch)


def _in_place(index: Tensor, batch: int) -> Order:
    """Of the numbers of the examples that are looked up: each its own share, in order, or each in turn."""
    here = torch.arange(batch, device=index.device)
    flat = index.flatten() % batch
    each, rest = divmod(flat.numel(), batch)
    if rest:
        return Order.LOST
    own = (flat.view(batch, each) == here[:, None]).all() | (flat.view(each, batch) == here).all()
    return Order.KEPT if bool(own) else Order.LOST


def _shares(mask: Tensor, batch: int) -> Order:
    """Of what a mask keeps: as many entries of each example, or an unknown number of each."""
    if mask.ndim and mask.shape[0] == batch:
        counts = mask.reshape(batch, -1).sum(1)
        return Order.KEPT if bool((counts == counts[:1]).all()) else Order.LOST
    return Order.KEPT if bool(mask.all()) else Order.DOUBTFUL
