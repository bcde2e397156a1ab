"""The uses of one call: where the gradients of its outputs arrive, and go on batch first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dpbench.derived import Derived
from dpbench.facts import Facts
from dpbench.layout import Layout
from dpbench.ops.call import Call, bind
from dpbench.ops.generic import Function
from dpbench.ops.use import Use
from dpbench.plan import PlannedCall, leaves


class Backward(Protocol):
    """Where output gradients are wanted."""

    def ready(self) -> bool:
        """Whether those that come now are."""

    def arrive(self, use: Use, derived: Derived, ds: Tensor) -> None:
        """Take one use and its output gradient, batch first."""


def ruled(
    planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any], known: Mapping[int, Derived], batch: int
) -> list[Use] | None:
    """The uses in a call by its family's rule; None where there is none for it."""
    family = planned.family
    if family is None:
        return None
    arguments = bind(family.signature, args, kwargs)
    # The rules are written for real numbers.
    if any(isinstance(value, Tensor) and value.is_complex() for value in arguments.values()):
        return None
    return family.uses(Call(planned.function, arguments, batch, known, planned.layouts))


def generic(
    planned: PlannedCall,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    known: Mapping[int, Derived],
    outs: tuple[Layout | None, ...],
    batch: int,
) -> Function:
    """A call by the generic rule."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    inputs = leaves(planned.function, args, kwargs)
    by_id = {id(inputs[key]): layout for key, layout in planned.layouts.items()}
    layouts = {
        i: by_id[id(leaf)].fitted(leaf.shape[by_id[id(leaf)].axis], batch)
        for i, leaf in enumerate(flat)
        if id(leaf) in by_id
    }
    parameters = [i for i, leaf in enumerate(flat) if id(leaf) in known]
    return Function(planned.function, flat, spec, parameters, layouts, outs, batch)


def prove(function: Function, outs: tuple[Layout | None, ...], results: list[Tensor], batch: int) -> None:
    """See that a function without a rule gives one example at a time what it gave the batch."""
    if isinstance(results[0], FakeTensor):
        return
    for alone, result, layout in zip(function.outputs(), results, outs, strict=True):
        if layout is not None:
            function.compare(alone, layout.batch_first(result.detach(), batch))


class Site:
    """What a tap delivers to. It holds the activations until then, and lets go of them."""

    def __init__(
        self,
        uses: list[Use],
        derived: list[Derived],
        outs: tuple[Layout | None, ...],
        shape: torch.Size,
        batch: int,
        backward: Backward,
        function: Function | None = None,
        *,
        first: bool = False,
    ) -> None:
        """``first``: whether nothing but parameters needs a gradient in the call."""
        self.derived = derived
        self._first = first
        self._uses, self._outs, self._shape, self._batch = uses, outs, shape, batch
        self._backward, self._function = backward, function

    def facts(self) -> Iterator[tuple[Use, Derived, Facts]]:
        """The sizes of each use."""
        layout = self._outs[0]
        if layout is None:
            return
        ds = layout.batch_first(torch.empty(self._shape, device="meta"), self._batch)
        for use, derived in zip(self._uses, self.derived, strict=True):
            yield use, derived, replace(use.facts(ds), first=self._first)

    def deliver(self, ds: tuple[Tensor | None, ...]) -> None:
        """Take the gradients of the call's outputs, at the first backward; a second one passes by."""
        if not self._uses or all(d is None for d in ds) or not self._backward.ready():
            return
        if self._function is not None:
            self._function.arrived(ds)
        value, layout = next((d, out) for d, out in zip(ds, self._outs, strict=True) if d is not None)
        assert value is not None
        main = value if layout is None else layout.batch_first(value, self._batch)
        uses = self._uses
        self.close()
        for use, derived in zip(uses, self.derived, strict=True):
            self._backward.arrive(use, derived, main)

    def close(self) -> None:
        """Let go of the activations."""
        self._uses, self._function = [], None
