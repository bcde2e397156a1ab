"""Analytic space: what an implementation's modules keep and what they need for a moment, beside activations.

Per use of a weight, in elements: its input BTd, an output gradient BTp, ghost norms 2BT^2, a per-sample gradient
Bpd, a parameter's gradient pd. Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, table 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpbench.complexity.modules import Layer, by_parameter, decided, goes_one_by_one, is_booked
from dpbench.facts import PRODUCTS

ITEM = {"bf16": 2, "amp-bf16": 2}
"""Bytes of an element by precision; 4 in the others, and in parameters and gradients under autocast."""


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of work with weights. Attention, norms, activation functions and losses are not in it."""

    activations: int
    """Inputs of the layers, which every implementation holds through its backward."""
    kept: int
    """What is kept of each layer until the clipping factors are known, summed over layers."""
    transient: int
    """The most that one layer needs for a moment."""
    gradients: int
    """What every implementation ends with: one gradient, or clipped sum, of each parameter."""

    @property
    def peak(self) -> int:
        """All of it at once."""
        return self.activations + self.kept + self.transient + self.gradients


def of_network(layers: Iterable[Layer], modules: str, precision: str = "fp32") -> Space:
    """The space of one step. An implementation that goes through examples one by one holds one at a time."""
    item, alone = ITEM.get(precision, 4), goes_one_by_one(modules)
    activations = kept = transient = gradients = 0
    for uses in by_parameter(layers).values():
        B = 1 if alone else uses[0].facts.B
        stays, passes = _of_parameter(uses, decided(modules, uses), B)
        activations += sum(B * f.T * f.d for f in (u.facts for u in uses) if f.rule in PRODUCTS and not uses[0].frozen)
        # One example's own gradient waits for its norm, beside the sum.
        kept += stays + (uses[0].size if alone and not uses[0].frozen else 0)
        transient = max(transient, passes)
        gradients += 0 if uses[0].frozen else uses[0].size
    return Space(activations * item, kept * item, transient * item, gradients * (2 if precision == "bf16" else 4))


def _of_parameter(uses: Sequence[Layer], used: Sequence[str], B: int) -> tuple[int, int]:
    """Elements that are kept, and that are needed for a moment."""
    facts, size = [u.facts for u in uses], uses[0].size
    output = sum(B * f.T * f.p for f in facts)
    kept, moments = 0, [2 * output]
    for i, module in enumerate(used):
        if module == "5":
            kept += B * size
        elif module == "4" and "5" not in used:
            moments.append(output + B * size)
        elif module == "3" and facts[0].matrix:
            moments.append(output + 2 * B * sum(f.T for f in facts) ** 2)
        elif is_booked(used, i):
            # What is no matrix is kept instantiated, which is smaller.
            kept += output if facts[0].matrix else B * size
        elif module == "2b":
            # Of what is clipped, it is wasted, and dropped at once.
            moments.append(output + size if {"3", "4", "5"} & set(used) else 0)
    return kept, max(moments)
