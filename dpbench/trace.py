"""The functions that a forward calls between those that read parameters: another trace is another forward."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.errors import Refused
from dpbench.ops.call import name_of
from dpbench.selecting import SELECTING, Order, order


def _telling() -> frozenset[Callable[..., Any]]:
    names = (
        "transpose permute swapaxes swapdims movedim moveaxis flip roll rot90 einsum cat concat stack sum mean amax "
        "amin softmax log_softmax cumsum unbind select transpose_ t_"
    ).split()
    found = {getattr(owner, name) for owner in (torch, Tensor) for name in names if hasattr(owner, name)}
    return frozenset(found | {F.batch_norm, F.instance_norm, F.softmax, F.log_softmax})


_TELLING = _telling()
"""Functions whose numbers and texts (axes, equations, modes) do not depend on the batch size."""

WATCHED = _TELLING | SELECTING
"""Functions of which more is taken down than that they were called."""


def _asking() -> frozenset[Callable[..., Any]]:
    properties = (
        "shape dtype device requires_grad grad_fn is_leaf ndim layout is_cuda is_cpu is_sparse is_meta _version"
    )
    methods = (
        "size dim numel nelement stride is_contiguous is_floating_point is_complex element_size get_device __len__"
    )
    found = {getattr(Tensor, name).__get__ for name in properties.split()}
    found |= {getattr(owner, name) for owner in (torch, Tensor) for name in methods.split() if hasattr(owner, name)}
    return frozenset(found)


ASKING = _asking()
"""Functions that only ask: no gradient passes through them, and an observer may call more of them."""


class Trace:
    """What was called since the last parameter was read, and whether the examples are still in their places."""

    def __init__(self, batch: int, known: Container[int]) -> None:
        self.calls: list[Any] = []
        self._batch, self._known = batch, known
        self._order, self._by = Order.KEPT, ""

    def take(self) -> tuple[Any, ...]:
        """What was called since this was last asked."""
        calls, self.calls = tuple(self.calls), []
        return calls

    def watched(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Take down what else there is to say of a call in ``WATCHED``; ``calls`` has it already."""
        if function in _TELLING:
            self.calls.append(tuple([v for v in (*args, *kwargs.values()) if isinstance(v, (int, str))]))
        elif id(args[0] if args else None) in self._known:
            # A parameter is looked up, in which no example lies.
            return
        elif (became := order(function, args, kwargs, self._batch)) > self._order:
            self._order, self._by = became, name_of(function)

    def refuse_disorder(self, function: Callable[..., Any], names: str, rows: int) -> None:
        """Raise if it is not known whose entries ``function`` reads, ``rows`` of each example folded into one axis."""
        if self._order is Order.LOST or (self._order is Order.DOUBTFUL and rows > 1):
            raise Refused(
                f"{name_of(function)} reads {names} after {self._by}, which gave the examples different shares or "
                "places, so that which entries are whose cannot be known. Keep the batch in order and on an axis of "
                "its own: pad, and mask the loss."
            )
