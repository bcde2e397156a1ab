"""The per-sample gradient of one parameter, in the form in which the backward leaves it: (a, ds)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dpbench.coverage import NormMethod
from dpbench.derived import Derived
from dpbench.facts import Facts, added
from dpbench.numerics import squared_norms, weighted_sum
from dpbench.ops.generic import Generic
from dpbench.ops.matrix import Matrix
from dpbench.ops.shared import joined, joint_squared_ghost_norm
from dpbench.ops.use import Use
from dpbench.units import Units


@dataclass(frozen=True, slots=True)
class Term:
    """One use of a parameter and the output gradient that arrived there, batch first."""

    use: Use
    ds: Tensor
    derived: Derived

    def joined(self, examples: Tensor) -> Term:
        """With each row of ``examples`` (U, n) as one example."""
        return Term(*self.use.joined(self.ds, examples), self.derived)


def ghostable(uses: Sequence[tuple[Use, Derived]]) -> bool:
    """Whether norm and clipped sum of a parameter that is used so can be had without instantiating."""
    first = uses[0][1]
    return first.moves and all(use.ghostable and derived is first for use, derived in uses)


def instantiated_by(terms: Sequence[Term]) -> NormMethod:
    """How per-sample gradients of a parameter that is used so are formed. It is asked at every step."""
    method = NormMethod.VECTOR
    for term in terms:
        if isinstance(term.use, Generic):
            return NormMethod.GENERIC
        if term.use.ghostable:
            method = NormMethod.INSTANTIATED
    return method


def _as_one(terms: list[Term]) -> list[Term]:
    """Matrix uses of one tensor as one, or the terms as they are: a recurrent weight is used at every step."""
    matrices = [(term.use, term.ds) for term in terms if isinstance(term.use, Matrix)]
    if len(terms) == 1 or len(matrices) < len(terms) or any(term.derived is not terms[0].derived for term in terms):
        return terms
    return [Term(*joined(matrices), terms[0].derived)]


class SampleGradient:
    """``g_i`` of one parameter for all examples, not yet formed; what an algorithm makes of it is its choice.

    It lives until the algorithm lets go of it. Parameters that are no matrices (biases, scales) are
    small: their (B, size) gradients are formed once, whatever the algorithm. ``methods`` is told
    how, by name, at the first call that norms can be had of.

    With units it is the gradient of each unit, the sum of its examples': (U, ...) in place of (B, ...).
    """

    def __init__(
        self,
        name: str,
        parameter: Tensor,
        terms: list[Term],
        methods: dict[str, NormMethod],
        units: Units | None = None,
    ) -> None:
        self.name, self._units = name, units
        self._parameter = parameter
        self._terms = _as_one(terms)
        self.ghostable = ghostable([(term.use, term.derived) for term in terms])
        """Whether norm and clipped sum can be had without instantiating."""
        self._small: Tensor | None = None
        self._methods = methods

    @property
    def facts(self) -> Facts:
        """B, T, d, p of its first use, with T added up over all uses, and over the examples of the largest unit."""
        facts = added([term.use.facts(term.ds) for term in self._terms], ghostable=self.ghostable)
        return facts if self._units is None else facts.joined(len(self._units), self._units.largest)

    @property
    def ghost_needs_less_space(self) -> bool:
        """The layerwise decision of Bu et al. (2022), ``2 T^2 < p d``."""
        return self.ghostable and self.facts.ghost_needs_less_space

    def squared_ghost_norm(self) -> Tensor:
        """Squared norms (module 3), shape (B,)."""
        if self.ghostable:
            found = [_squared_ghost_norm(terms) for terms in self._joined(self._terms)]
            squares = [norm for norm in found if norm is not None]
            if len(squares) == len(found):
                self._methods.setdefault(self.name, NormMethod.GHOST)
                return _together(squares)
        return squared_norms(self.instantiate())

    def _joined(self, terms: Sequence[Term]) -> Iterator[Sequence[Term]]:
        """The terms with a unit as one example, for the units of each size in turn; as they are without units."""
        if self._units is None:
            yield terms
        else:
            for examples in self._units.by_size:
                yield [term.joined(examples) for term in terms]

    def instantiate(self) -> Tensor:
        """Per-sample gradients (module 4), shape (B, *parameter.shape)."""
        if self._small is not None:
            return self._small
        if self.name not in self._methods:
            self._methods[self.name] = instantiated_by(self._terms)
        total: Tensor | None = None
        for term in self._terms:
            g = term.derived.pull(self._parameter, self._instantiated(term), batched=True)
            total = g if total is None else total + g
        assert total is not None
        if not self.ghostable:
            self._small = total
            self._terms = self._terms[:1]
        return total

    def _instantiated(self, term: Term) -> Tensor:
        if self._units is None or term.use.ghostable:
            return _together([one.use.instantiate(one.ds) for (one,) in self._joined([term])])
        return self._units.sum(term.use.instantiate(term.ds))

    def weighted_sum(self, c: Tensor) -> Tensor:
        """``sum_i c_i g_i`` (module 2b with the weighted output gradient), shape of the parameter.

        The last thing to ask for: activations and output gradients are let go of.
        """
        total = self._weighted_sum(c)
        self._terms, self._small = [], None
        return total

    def _weighted_sum(self, c: Tensor) -> Tensor:
        if self._small is not None or not self.ghostable:
            return weighted_sum(self.instantiate(), c)
        if self._units is not None:
            c = self._units.of_examples(c)
        total: Tensor | None = None
        for term in self._terms:
            part = term.use.weighted_sum(term.ds, c)
            total = part if total is None else total.add_(part)
        assert total is not None
        first = self._terms[0].derived
        return first.pull(self._parameter, total, batched=False)


def _squared_ghost_norm(terms: Sequence[Term]) -> Tensor | None:
    if len(terms) == 1:
        return terms[0].use.squared_ghost_norm(terms[0].ds)
    return joint_squared_ghost_norm([(term.use, term.ds) for term in terms])


def _together(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
