"""The tape: records every use of a trainable parameter in a forward, and catches the output gradients.

Uses are recorded at the level of functions (``F.linear``, ``F.embedding``, ``torch.add``), not of
modules: subclassed layers, functional calls, adapters, shared weights and bare parameters all
arrive the same way. Two modes differ in what autograd sees of the weights:

- *detached*: functions get detached weights, so that a backward computes 2a and nothing else;
- *attached*: functions get the weights, for algorithms whose definition includes a 2b by autograd
  (a wasted one, or a second backward of the reweighted loss).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointError

from dpbench.derived import Derived, derive, direct
from dpbench.errors import NotConclusive, Refused
from dpbench.facts import Facts, added
from dpbench.gradient import SampleGradient, Term
from dpbench.graph import reachable_taps
from dpbench.layout import Layout
from dpbench.ops import FAMILY_OF
from dpbench.ops.call import Call, bind
from dpbench.ops.elementwise import BROADCASTING, EXPANDING, REPEATING, aligned, can_spread, once
from dpbench.ops.generic import Function
from dpbench.ops.use import Use
from dpbench.ops.vector import Given
from dpbench.plan import Plan, PlannedCall, leaves, operands, tensors
from dpbench.tap import Tap

Visit = Callable[[SampleGradient], None]


class StructureChanged(Exception):
    """The forward reads parameters in another order than its plan says."""


class Tape(TorchFunctionMode):
    """Use as a context around one forward; then ``backward`` visits every parameter's gradient once."""

    def __init__(self, parameters: Mapping[str, Tensor], plan: Plan, batch: int, *, attached: bool) -> None:
        super().__init__()
        self.parameters = parameters
        self.batch = batch
        self.losses: Tensor | None = None
        self._plan, self._attached = plan, attached
        self._known = direct(parameters)
        self._counted = 0
        self._boundary: set[Any] = set()
        self._waiting: dict[str, int] = {}
        self._arrived: dict[str, list[Term]] = {}
        self._visit: Visit | None = None
        self._sites: list[Site] = []
        device = next(iter(parameters.values())).device
        self._anchor = torch.zeros((), device=device, requires_grad=True)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Pass calls through; those that read parameters are looked up in the plan."""
        known = self._known
        for value in args:
            if id(value) in known:
                return self._read(func, args, kwargs or {})
            if type(value) in (list, tuple):
                for item in value:
                    if id(item) in known:
                        return self._read(func, args, kwargs or {})
        if kwargs is None:
            return func(*args)
        for value in kwargs.values():
            if id(value) in known:
                return self._read(func, args, kwargs)
        return func(*args, **kwargs)

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not torch.is_grad_enabled():
            return func(*args, **kwargs)
        read = operands(args, kwargs, self._known)
        calls = self._plan.calls
        planned = calls[self._counted] if self._counted < len(calls) else None
        fits = (
            planned is not None
            and planned.function == func
            and planned.operands == tuple(derived.key for derived in read)
        )
        if planned is not None and fits and planned.is_use:
            self._counted += 1
            return self._use(planned, args, kwargs, read)
        result = func(*args, **kwargs)
        outs = tensors(result)
        if not any(out.requires_grad for out in outs):
            return result
        if not fits:
            raise StructureChanged
        for i, out in enumerate(outs):
            if out.requires_grad:
                self._known[id(out)] = derive((self._counted, i), func, args, read, out)
        self._counted += 1
        return result

    def _use(
        self, planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any], read: list[Derived]
    ) -> Any:
        func, out, ndim = planned.function, planned.outs[0], planned.ndims[0]
        broadcasting = func in BROADCASTING or func in EXPANDING or func in REPEATING
        if out is not None and broadcasting and all(can_spread(d.tensor, out, ndim) for d in read):
            spread = {id(d.tensor): self._spread(d, out, ndim) for d in read}
            args, kwargs = _replaced(args, spread), dict(zip(kwargs, _replaced(kwargs.values(), spread), strict=True))
            return func(*once(func, args, out.axis), **kwargs)
        seen = {id(d.tensor): self._seen(d) for d in read}
        values = dict(zip(kwargs, _replaced(kwargs.values(), seen), strict=True))
        result = func(*_replaced(args, seen), **values)
        uses, function = self._rule(planned, args, kwargs)
        derived = [self._known[id(use.parameter)] for use in uses]
        shape = tensors(result)[0].shape
        site = self._site(uses, derived, planned.outs, shape, function)
        if function is not None:
            self._prove(function, planned, tensors(result))
        if isinstance(result, Tensor):
            return Tap.apply(self._anchor, site, result if function is None else _own(result))
        flat, spec = pytree.tree_flatten(result)
        places = [i for i, value in enumerate(flat) if isinstance(value, Tensor)]
        tapped = Tap.apply(self._anchor, site, *(_own(flat[i]) for i in places))
        for i, value in zip(places, tapped if isinstance(tapped, tuple) else (tapped,), strict=True):
            flat[i] = value
        return pytree.tree_unflatten(flat, spec)

    def _rule(
        self, planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Use], Function | None]:
        func = planned.function
        family = FAMILY_OF.get(func)
        out = planned.outs[0]
        if family is not None and out is not None:
            arguments = bind(family.signature, args, kwargs)
            parameters = {name for name, value in arguments.items() if id(value) in self._known}
            uses = family.uses(Call(func, arguments, self.batch, parameters, planned.layouts))
            if uses is not None:
                return uses, None
        return self._generic(planned, args, kwargs)

    def _generic(
        self, planned: PlannedCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Use], Function]:
        flat, spec = pytree.tree_flatten((args, kwargs))
        by_id = {id(t): planned.layouts[key] for key, t in leaves(planned.function, args, kwargs).items()
                 if key in planned.layouts}  # fmt: skip
        layouts = {i: by_id[id(leaf)] for i, leaf in enumerate(flat) if id(leaf) in by_id}
        parameters = [i for i, leaf in enumerate(flat) if id(leaf) in self._known]
        function = Function(planned.function, flat, spec, parameters, layouts, planned.outs, self.batch)
        return function.uses(), function

    def _site(
        self,
        uses: list[Use],
        derived: list[Derived],
        outs: tuple[Layout | None, ...],
        shape: torch.Size,
        function: Function | None,
    ) -> Site:
        site = Site(self, uses, derived, outs, shape, function)
        self._sites.append(site)
        return site

    def _prove(self, function: Function, planned: PlannedCall, results: list[Tensor]) -> None:
        """The first time, see that one example at a time gives what the batch gave."""
        number = self._counted - 1
        if number in self._plan.proven or isinstance(results[0], FakeTensor):
            return
        for alone, result, layout in zip(function.outputs(), results, planned.outs, strict=True):
            if layout is not None:
                function.compare(alone, layout.batch_first(result.detach(), self.batch))
        self._plan.proven.add(number)

    def _seen(self, derived: Derived) -> Tensor:
        """What a function gets to see of a parameter; in attached mode through a node that marks the use."""
        if not self._attached:
            return derived.tensor.detach()
        alias = derived.tensor.view_as(derived.tensor)
        self._boundary.add(alias.grad_fn)
        return alias

    def _spread(self, derived: Derived, out: Layout, ndim: int) -> Tensor:
        expanded = aligned(self._seen(derived), out, ndim, self.batch)
        site = self._site([Given(derived.tensor)], [derived], (Layout(out.axis),), expanded.shape, None)
        return out.spread(Tap.apply(self._anchor, site, expanded), self.batch)

    def finish(self, losses: Tensor) -> None:
        """Take the losses of the forward that was recorded; raises if it stopped short of the plan."""
        if self._counted != len(self._plan.calls):
            raise StructureChanged
        self.losses = losses

    def close(self) -> None:
        """Let go of everything: the graph holds the taps' sites, which hold the tape."""
        self.losses, self._visit = None, None
        for site in self._sites:
            site.close()
        self._sites.clear()
        self._known.clear()
        self._boundary.clear()
        self._arrived.clear()
        self._waiting.clear()

    def facts(self) -> dict[str, Facts]:
        """The sizes of every matrix use by parameter, before any backward; T is added up over uses."""
        found: dict[str, list[Facts]] = {}
        for site in self._sites:
            for root, facts in site.facts():
                found.setdefault(root, []).append(facts)
        return {root: added(facts) for root, facts in found.items()}

    def reweighted(self, c: Tensor) -> dict[str, Tensor]:
        """A second backward, of ``sum_i c_i l_i``: 2a and 2b by autograd (attached mode)."""
        assert self.losses is not None
        total = (c.detach().to(self.losses.dtype) * self.losses).sum()
        parameters = self.parameters
        grads = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        return {name: g for name, g in zip(parameters, grads, strict=True) if g is not None}

    def backward(self, visit: Visit, *, wasted: Iterable[str] = (), retain_graph: bool = False) -> None:
        """Backpropagate the summed losses; ``visit`` gets each parameter's gradient when it is complete.

        Computes 2a alone, and 2b by autograd for the parameters named in ``wasted`` (attached mode),
        whose results are dropped: non-private gradients that no one needs.

        Raises:
            Refused: if a parameter is read where the tape cannot see it.
            NotConclusive: if a recorded use got no output gradient although the losses depend on it.
        """
        losses = self.losses
        assert losses is not None
        names = {id(p): name for name, p in self.parameters.items()}
        if losses.grad_fn is None:
            return
        inputs = [self._anchor, *(self.parameters[name] for name in wasted)]
        for node in reachable_taps(losses, names, self._boundary):
            for derived in node.site.derived:
                # A wasted 2b runs through the graph of a derived parameter, which its pull-back needs again.
                retain_graph = retain_graph or (len(inputs) > 1 and not derived.direct)
                for root in derived.roots:
                    self._waiting[root] = self._waiting.get(root, 0) + 1
        self._visit = visit
        try:
            torch.autograd.grad(losses.sum(), inputs, retain_graph=retain_graph, allow_unused=True)
        except CheckpointError as error:
            raise Refused(
                "gradient checkpointing recomputes a forward in which weights were detached, which changes what "
                "it saves. Switch checkpointing off, or use an implementation with attached weights "
                "(opacus, fastgradclip, ghostclip, mixghostclip)."
            ) from error
        self._visit = None
        if self._waiting:
            raise NotConclusive(
                f"no output gradient arrived at a use of {', '.join(self._waiting)}, which the losses depend on; "
                "its gradient would be incomplete. Please report the model."
            )

    def deliver(self, use: Use, derived: Derived, ds: Tensor) -> None:
        """Take the output gradient of one use; visit the parameters that are complete with it."""
        for root in derived.roots:
            self._arrived.setdefault(root, []).append(Term(use, ds, derived))
            self._waiting[root] -= 1
            if not self._waiting[root]:
                del self._waiting[root]
                assert self._visit is not None
                self._visit(SampleGradient(root, self.parameters[root], self._arrived.pop(root)))


class Site:
    """The uses of one call: turns the gradients of its outputs batch first and hands them to the tape."""

    def __init__(
        self,
        tape: Tape,
        uses: list[Use],
        derived: list[Derived],
        outs: tuple[Layout | None, ...],
        shape: torch.Size,
        function: Function | None,
    ) -> None:
        self.derived = derived
        self._tape, self._uses, self._outs, self._function = tape, uses, outs, function
        self._shape = shape

    def facts(self) -> Iterator[tuple[str, Facts]]:
        """The sizes of each use, by each parameter that it reads."""
        layout = self._outs[0]
        if layout is None:
            return
        ds = layout.batch_first(torch.empty(self._shape, device="meta"), self._tape.batch)
        for use, derived in zip(self._uses, self.derived, strict=True):
            for root in derived.roots:
                yield root, use.facts(ds)

    def close(self) -> None:
        """Let go of the activations."""
        self._uses, self._function = [], None

    def deliver(self, ds: tuple[Tensor | None, ...]) -> None:
        """Called by the tap, once."""
        tape, outs = self._tape, self._outs
        if self._function is not None:
            self._function.arrived(ds)
        first = next(i for i, layout in enumerate(outs) if layout is not None)
        value, layout = ds[first], outs[first]
        assert layout is not None
        if value is None:
            value = next(d for d in ds if d is not None)
            main = value
        else:
            main = layout.batch_first(value, tape.batch)
        uses, self._uses, self._function = self._uses, [], None
        for use, derived in zip(uses, self.derived, strict=True):
            tape.deliver(use, derived, main)


def _replaced(values: Iterable[Any], by_id: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(
        by_id[id(v)] if id(v) in by_id
        else type(v)(by_id.get(id(item), item) for item in v) if type(v) in (list, tuple)
        else v
        for v in values
    )  # fmt: skip


def _own(out: Tensor) -> Tensor:
    """A function without a rule may have saved its output, which in-place operations must not reach."""
    return out.clone()

