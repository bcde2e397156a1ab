"""The recorder: sees every use of a trainable parameter in a forward, and taps the output gradients.

Uses are recorded at the level of functions (``F.linear``, ``F.embedding``, ``torch.add``), not of
modules: subclassed layers, functional calls, adapters, shared weights and bare parameters all
arrive the same way. Two modes differ in what autograd sees of the weights:

- *detached*: functions get detached weights, so that a backward computes 2a and nothing else;
- *attached*: functions get the weights, for algorithms whose definition includes a 2b by autograd
  (a wasted one, or a second backward of the reweighted loss).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from dpbench import checkpoints, refusals
from dpbench.derived import Derived, derive, direct
from dpbench.errors import Refused
from dpbench.layout import Layout, StructureChanged
from dpbench.ops.call import name_of
from dpbench.ops.elementwise import (
    REPEATING,
    aligned,
    asked_for,
    can_repeat,
    can_spread,
    once,
    repeated,
    told,
)
from dpbench.ops.generic import Function
from dpbench.ops.use import Use
from dpbench.ops.vector import Given
from dpbench.plan import Plan, PlannedCall, operands, replaced, tensors
from dpbench.site import Site, generic, prove, ruled
from dpbench.tap import Tap
from dpbench.tape import Tape
from dpbench.trace import ASKING, WATCHED, Trace


class Recorder(TorchFunctionMode):
    """Use as a context around one forward, then ``finish``: the tape has a site for every use."""

    def __init__(self, tape: Tape, plan: Plan, batch: int, *, attached: bool) -> None:
        super().__init__()
        self._tape, self._batch, self._plan, self._attached = tape, batch, plan, attached
        self._known = direct(tape.parameters)
        self._read_calls = 0
        self._trace = Trace(batch, self._known)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Pass calls through, except those that read parameters. Written out, as it runs at every call."""
        if func in ASKING:
            return func(*args, **(kwargs or {}))
        trace = self._trace
        trace.calls.append(func)
        if func in WATCHED:
            trace.watched(func, args, kwargs or {})
        known = self._known
        for value in args:
            if id(value) in known:
                return self._read(func, args, kwargs or {})
            if type(value) in (list, tuple):
                for item in value:
                    if id(item) in known:
                        return self._read(func, args, kwargs or {})
        if not kwargs:
            return func(*args)
        for value in kwargs.values():
            if id(value) in known or (type(value) in (list, tuple) and any(id(item) in known for item in value)):
                return self._read(func, args, kwargs)
        return func(*args, **kwargs)

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that is given parameters: a use, a derivation, or neither (a shape, no gradient)."""
        if not torch.is_grad_enabled():
            return func(*args, **kwargs)
        read = operands(args, kwargs, self._known)
        planned = self._plan.next(self._read_calls, func, read, self._trace.calls)
        if planned is not None and planned.is_use:
            self._read_calls += 1
            self._trace.calls = []
            return self._use(planned, args, kwargs, read)
        result = func(*args, **kwargs)
        outs = tensors(result)
        if not any(out.requires_grad for out in outs):
            return result
        if planned is None or not planned.derives(outs):
            raise StructureChanged
        self._trace.calls = []
        for i, out in enumerate(outs):
            if out.requires_grad:
                self._known[id(out)] = derive((self._read_calls, i), func, args, read, out)
        self._read_calls += 1
        return result

    def _use(self, planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any], read: list[Derived]) -> Any:
        func, out, ndim = planned.function, planned.outs[0], planned.ndims[0]
        for derived in read:
            derived.check()
        again = checkpoints.inside()
        if again and not self._attached:
            raise refusals.detached_checkpointing(", ".join(read[0].roots))
        self._trace.refuse_disorder(func, read[0].roots[0], out.rows if out else 1)
        # What is computed again gets the weights as they are: here, too, no copies of them may be saved.
        if planned.spreads and out is not None and not again:
            if all(can_spread(func, d.tensor, out, ndim) for d in read):
                return self._spread_use(planned, args, kwargs, read, out)
            if func in REPEATING and can_repeat(copies := told(args, kwargs), out, self._batch):
                samples = self._samples(read[0], self._seen(read[0]).expand(self._batch, *read[0].tensor.shape), 0)
                return repeated(samples, copies, out, self._batch)
        seen_args, seen_kwargs = replaced(args, kwargs, {id(d.tensor): self._seen(d) for d in read})
        # None of the functions that have a family writes in place, or gives what it was given.
        given = tensors((args, kwargs)) if planned.family is None else []
        before = [value._version for value in given]
        result = func(*seen_args, **seen_kwargs)
        outs = tensors(result)
        layouts = self._fitted(outs, planned)
        uses = ruled(planned, args, kwargs, self._known, self._batch)
        if uses is not None:
            site = self._site(planned, uses, layouts, outs[0].shape)
            if not planned.first and isinstance(result, Tensor) and result.grad_fn is not None:
                return self._watch(result, site)
            return self._tapped(result, outs, site)
        if [value._version for value in given] != before:
            raise Refused(
                f"{name_of(func)} writes {', '.join(read[0].roots)} in place into another tensor, where its use "
                "cannot be followed. Use the out-of-place function and its result."
            )
        if any(result is value for value in given):
            # Only looked at, as for its dtype: ``x.to(weight)``.
            return result
        function = generic(planned, args, kwargs, self._known, layouts, self._batch)
        self._prove(function, layouts, outs)
        # It may have saved an output, which in-place operations on what we give out must not reach.
        site = self._site(planned, function.uses(), layouts, outs[0].shape, function)
        return self._tapped(result, [value.clone() for value in outs], site)

    def _spread_use(
        self, planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any], read: list[Derived], out: Layout
    ) -> Any:
        """Bare parameters, expanded over the batch and tapped before the function sees them."""
        func, ndim = planned.function, planned.ndims[0]
        out.fitted(self._size(func, args, kwargs, out, ndim), self._batch)
        spread = {}
        for d in read:
            samples = self._samples(d, aligned(self._seen(d), out, ndim, self._batch), out.axis)
            spread[id(d.tensor)] = out.spread(samples, self._batch)
        args, kwargs = once(func, *replaced(args, kwargs, spread), out.axis)
        result = func(*args, **kwargs)
        self._fitted(tensors(result), planned)
        return result

    def _samples(self, derived: Derived, expanded: Tensor, axis: int) -> Tensor:
        """A parameter that was expanded over the examples on ``axis``, tapped: its gradient is theirs."""
        given: list[Use] = [Given(derived.tensor)]
        site = Site(given, [derived], (Layout(axis),), expanded.shape, self._batch, self._tape)
        tapped = Tap.apply(self._tape.anchor, site, expanded)
        self._tape.sites[tapped.grad_fn] = site
        assert isinstance(tapped, Tensor)
        return tapped

    def _site(
        self,
        planned: PlannedCall,
        uses: list[Use],
        layouts: tuple[Layout | None, ...],
        shape: torch.Size,
        function: Function | None = None,
    ) -> Site:
        origins = [self._known[id(use.parameter)] for use in uses]
        return Site(uses, origins, layouts, shape, self._batch, self._tape, function, first=planned.first)

    def _prove(self, function: Function, layouts: tuple[Layout | None, ...], outs: list[Tensor]) -> None:
        """Once for a plan, see that a function without a rule gives one example what it gives the batch."""
        number = self._read_calls - 1
        if number not in self._plan.proven:
            prove(function, layouts, outs, self._batch)
            self._plan.proven.add(number)

    def _tapped(self, result: Any, outs: list[Tensor], site: Site) -> Any:
        """What a function returned, with its output tensors tapped."""
        tapped = Tap.apply(self._tape.anchor, site, *outs)
        self._tape.sites[tensors(tapped)[0].grad_fn] = site
        if isinstance(result, Tensor):
            return tapped
        fresh = iter(tapped if isinstance(tapped, tuple) else (tapped,))
        return pytree.tree_map_only(Tensor, lambda _: next(fresh), result)

    def _fitted(self, outs: list[Tensor], planned: PlannedCall) -> tuple[Layout | None, ...]:
        """Where the examples lie in these outputs; raises if their axes are not those of the plan."""
        if tuple([out.ndim for out in outs]) != planned.ndims:
            raise StructureChanged
        return tuple(
            [
                layout if layout is None else layout.fitted(out.shape[layout.axis], self._batch)
                for out, layout in zip(outs, planned.outs, strict=True)
            ]
        )

    def _size(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Layout, ndim: int) -> int:
        """How long the examples' axis is to be, from what a bare parameter is combined with."""
        asked = asked_for(func, args, kwargs, out.axis)
        if asked is not None:
            return asked
        sizes = [1]
        for value in tensors((args, kwargs)):
            if value.ndim > ndim:
                raise StructureChanged
            axis = out.axis - (ndim - value.ndim)
            if axis >= 0 and id(value) not in self._known:
                sizes.append(value.shape[axis])
        return max(sizes)

    def _watch(self, result: Tensor, site: Site) -> Tensor:
        """Catch the output gradient at a node that the backward passes on its way to an anchor anyway."""
        if result._is_view():
            # An in-place operation on a view replaces its gradient function, and the hook with it.
            result = torch.ops.aten._unsafe_view.default(result, result.shape)
        node, number = result.grad_fn, result.output_nr
        assert node is not None
        node.register_prehook(lambda ds: site.deliver((ds[number],)))
        self._tape.sites[node] = site
        return result

    def _seen(self, derived: Derived) -> Tensor:
        """What a function gets to see of a parameter; in attached mode through a node that marks the use."""
        if not self._attached:
            return derived.tensor.detach()
        alias = derived.tensor.view_as(derived.tensor)
        self._tape.boundary.add(alias.grad_fn)
        return alias

    def finish(self, losses: Tensor) -> None:
        """Take the losses of the forward that was recorded; raises if it stopped short of the plan."""
        if self._read_calls != len(self._plan.calls) or frozenset(self._trace.calls) != self._plan.tail:
            raise StructureChanged
        self._tape.losses = losses
