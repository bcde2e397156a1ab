"""The tape: the uses of parameters in one forward, and the backward in which their gradients arrive.

What an algorithm works with: ``backward`` visits every parameter's per-sample gradient once, as
(a, ds); ``reweighted`` is a second backward. :mod:`dpbench.recorder` fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointError

from dpbench import refusals
from dpbench.coverage import NormMethod
from dpbench.derived import Derived
from dpbench.errors import NotConclusive
from dpbench.facts import Facts, added
from dpbench.gradient import SampleGradient, Term, ghostable
from dpbench.graph import reachable
from dpbench.numerics import factors
from dpbench.ops.use import Use
from dpbench.site import Site
from dpbench.units import Units

Visit = Callable[[SampleGradient], None]


class Tape:
    """The sites of one forward, by the nodes of the graph at which output gradients arrive."""

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self.parameters = parameters
        self.losses: Tensor | None = None
        """What is backpropagated: zero where a mask leaves an example out."""
        self.told: Tensor | None = None
        """The losses as the model gave them, detached."""
        self.units: Units | None = None
        """Whose examples are summed before the norm; without, each example is its own."""
        self.sites: dict[Any, Site] = {}
        self.boundary: set[Any] = set()
        """Nodes through which recorded uses read their parameters (attached weights)."""
        self.norm_methods: dict[str, NormMethod] = {}
        """How each parameter's norm was found, as far as the backward and the algorithm have come."""
        device = next(iter(parameters.values())).device
        self.anchor = torch.zeros((), device=device, requires_grad=True)
        """What a backward is asked for: its way there passes every tap, and no weight."""
        self._waiting: dict[str, int] = {}
        self._arrived: dict[str, list[Term]] = {}
        self._visit: Visit | None = None

    def uses(self) -> Iterator[tuple[str, Facts]]:
        """The sizes of every use, in the order of the forward; no matrix where norms are instantiated whatever."""
        ghosts = {root: facts.matrix for root, facts in self.facts().items()}
        for site in self.sites.values():
            for _, derived, facts in site.facts():
                for root in derived.roots:
                    yield root, facts if facts.matrix == ghosts[root] else replace(facts, matrix=False)

    def facts(self) -> dict[str, Facts]:
        """The sizes of every parameter's uses, before any backward; T is added up over uses and in a unit."""
        uses: dict[str, list[tuple[Use, Derived]]] = {}
        sizes: dict[str, list[Facts]] = {}
        for site in self.sites.values():
            for use, derived, facts in site.facts():
                for root in derived.roots:
                    uses.setdefault(root, []).append((use, derived))
                    sizes.setdefault(root, []).append(facts)
        found = {root: added(sizes[root], ghostable=ghostable(uses[root])) for root in uses}
        units = self.units
        return found if units is None else {root: f.joined(len(units), units.largest) for root, f in found.items()}

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
        if losses.grad_fn is None:
            return
        names = {id(p): name for name, p in self.parameters.items()}
        inputs = [self.anchor, *(self.parameters[name] for name in wasted)]
        for node in reachable(losses, names, self.boundary) & self.sites.keys():
            for derived in self.sites[node].derived:
                # A wasted 2b runs through the graph of a derived parameter, which its pull-back needs again.
                retain_graph = retain_graph or (len(inputs) > 1 and not derived.direct)
                for root in derived.roots:
                    self._waiting[root] = self._waiting.get(root, 0) + 1
        self._visit = visit
        try:
            torch.autograd.grad(losses.sum(), inputs, retain_graph=retain_graph, allow_unused=True)
        except CheckpointError as error:
            raise refusals.other_forward() from error
        if self._waiting:
            raise NotConclusive(
                f"no output gradient arrived at a use of {', '.join(self._waiting)}, which the losses depend on; "
                "its gradient would be incomplete. Please report the model."
            )

    def ready(self) -> bool:
        """Whether a backward is the losses': one inside the forward (adversarial inputs) passes by.

        Raises:
            Refused: if it is to be differentiated again, as its weights are another function's there.
        """
        if self._visit is None and torch.is_grad_enabled():
            raise refusals.double_backward()
        return self._visit is not None

    def arrive(self, use: Use, derived: Derived, ds: Tensor) -> None:
        """Take the output gradient of one use; visit the parameters that are complete with it."""
        assert self._visit is not None
        for root in derived.roots:
            self._arrived.setdefault(root, []).append(Term(use, ds, derived))
            self._waiting[root] -= 1
            if not self._waiting[root]:
                del self._waiting[root]
                terms = self._arrived.pop(root)
                self._visit(SampleGradient(root, self.parameters[root], terms, self.norm_methods, self.units))

    def reweighted(self, c: Tensor) -> dict[str, Tensor]:
        """A second backward, of ``sum_i c_i l_i``: 2a and 2b by autograd (attached mode); c (B,), or (U,) of units."""
        assert self.losses is not None
        c = c.detach() if self.units is None else self.units.of_examples(c.detach())
        total = (factors(c, self.losses.dtype) * self.losses).sum()
        grads = torch.autograd.grad(total, list(self.parameters.values()), allow_unused=True)
        return {name: g for name, g in zip(self.parameters, grads, strict=True) if g is not None}

    def close(self) -> None:
        """Let go of everything: the graph holds the taps' sites, which hold the tape."""
        self.losses, self._visit = None, None
        for site in self.sites.values():
            site.close()
        for held in (self.sites, self.boundary, self._arrived, self._waiting):
            held.clear()
