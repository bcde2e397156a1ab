"""The per-sample gradient of one parameter, in the form in which the backward leaves it: (a, ds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dpbench.derived import Derived
from dpbench.facts import Facts, added
from dpbench.numerics import squared_norms, weighted_sum
from dpbench.ops.matrix import Matrix
from dpbench.ops.shared import joined, joint_squared_ghost_norm
from dpbench.ops.use import Use


@dataclass(frozen=True, slots=True)
class Term:
    """One use of a parameter and the output gradient that arrived there, batch first."""

    use: Use
    ds: Tensor
    derived: Derived


def ghostable(uses: Sequence[tuple[Use, Derived]]) -> bool:
    """Whether norm and clipped sum of a parameter that is used so can be had without instantiating."""
    first = uses[0][1]
    return first.moves and all(use.ghostable and derived is first for use, derived in uses)


def _joined(terms: list[Term]) -> list[Term]:
    """Matrix uses of one tensor as one, or the terms as they are: a recurrent weight is used at every step."""
    matrices = [(term.use, term.ds) for term in terms if isinstance(term.use, Matrix)]
    if len(terms) == 1 or len(matrices) < len(terms) or any(term.derived is not terms[0].derived for term in terms):
        return terms
    return [Term(*joined(matrices), terms[0].derived)]


class SampleGradient:
    """``g_i`` of one parameter for all examples, not yet formed; what an algorithm makes of it is its choice.

    It lives until the algorithm lets go of it. Parameters that are no matrices (biases, scales) are
    small: their (B, size) gradients are formed once, whatever the algorithm.
    """

    def __init__(self, name: str, parameter: Tensor, terms: list[Term]) -> None:
        self.name = name
        self._parameter = parameter
        self._terms = _joined(terms)
        self.ghostable = ghostable([(term.use, term.derived) for term in terms])
        """Whether norm and clipped sum can be had without instantiating."""
        self._small: Tensor | None = None

    @property
    def facts(self) -> Facts:
        """B, T, d, p of its first use, with T added up over all uses."""
        return added([term.use.facts(term.ds) for term in self._terms], ghostable=self.ghostable)

    @property
    def ghost_needs_less_space(self) -> bool:
        """The layerwise decision of Bu et al. (2022), ``2 T^2 < p d``."""
        return self.ghostable and self.facts.ghost_needs_less_space

    def squared_ghost_norm(self) -> Tensor:
        """Squared norms (module 3), shape (B,)."""
        if self.ghostable:
            if len(self._terms) == 1:
                return self._terms[0].use.squared_ghost_norm(self._terms[0].ds)
            norm = joint_squared_ghost_norm([(term.use, term.ds) for term in self._terms])
            if norm is not None:
                return norm
        return squared_norms(self.instantiate())

    def instantiate(self) -> Tensor:
        """Per-sample gradients (module 4), shape (B, *parameter.shape)."""
        if self._small is not None:
            return self._small
        total: Tensor | None = None
        for term in self._terms:
            g = term.derived.pull(self._parameter, term.use.instantiate(term.ds), batched=True)
            total = g if total is None else total + g
        assert total is not None
        if not self.ghostable:
            self._small = total
            self._terms = self._terms[:1]
        return total

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
        total: Tensor | None = None
        for term in self._terms:
            part = term.use.weighted_sum(term.ds, c)
            total = part if total is None else total.add_(part)
        assert total is not None
        first = self._terms[0].derived
        return first.pull(self._parameter, total, batched=False)
