"""What one use of a parameter looks like, in the numbers that complexity formulas speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

PRODUCTS = ("linear", "convolution")
"""Rules of functions that multiply with the parameter; the others add, scale or look up."""


@dataclass(frozen=True, slots=True)
class Facts:
    """B, T, d and p of ``s = a W``: a is (B, T, d), W is (d, p), s is (B, T, p).

    For a convolution T is the number of output positions and d = C_in / groups x kernel size.
    A parameter that is not a matrix (a bias, a norm layer's scale) has T = 1, d = 1 and p its size,
    and ``matrix`` is false: its per-sample gradients are always instantiated.
    """

    rule: str
    B: int
    T: int
    d: int
    p: int
    groups: int = 1
    matrix: bool = True
    first: bool = False
    """Whether nothing before it needs a gradient: then there is no 2a."""
    norm_flops: int | None = None
    """Of module 3, where the kernel that is picked is not the formula's."""
    instantiation_flops: int | None = None
    """Of module 4, likewise."""

    @classmethod
    def vector(cls, *, batch: int, size: int, rule: str) -> Facts:
        """A parameter that is instantiated whatever the algorithm, (B, size)."""
        return cls(rule=rule, B=batch, T=1, d=1, p=size, matrix=False)

    def joined(self, units: int, largest: int) -> Facts:
        """Where up to ``largest`` examples are one of ``units``: their positions are those of one example."""
        return replace(self, B=units, T=self.T * largest, norm_flops=None, instantiation_flops=None)

    @property
    def ghost_needs_less_space(self) -> bool:
        """The layerwise decision ``2 T^2 < p d`` (Bu et al. 2022, 2205.10683; 2023, section 3.2)."""
        return self.matrix and self.p * self.d > 2 * self.T**2

    @property
    def ghost_flops(self) -> int:
        """Of module 3, ``2 B T^2 (p + g d)``; the products of T = 1 are elementwise and count nothing."""
        return (
            0 if self.T == 1 or self.rule not in PRODUCTS else 2 * self.B * self.T**2 * (self.p + self.groups * self.d)
        )

    @property
    def product_flops(self) -> int:
        """Of one product with the weight, ``2 B T p d``: modules 1, 2a, 2b, 4; an embedding looks up and adds."""
        return 2 * self.B * self.T * self.p * self.d if self.rule in PRODUCTS else 0

    @property
    def ghost_needs_fewer_flops(self) -> bool:
        """Module 3 against module 4."""
        return self.matrix and self.ghost_flops < self.product_flops

    @property
    def ghost_needs_fewer_flops_than_reuse(self) -> bool:
        """Modules 3 and 2b against 4 and 5, where the instantiated gradient is used twice."""
        reused = self.product_flops + 2 * self.B * self.p * self.d
        return self.matrix and self.ghost_flops + self.product_flops < reused


def added(facts: Sequence[Facts], *, ghostable: bool) -> Facts:
    """The facts of one parameter's uses as those of one use, T added up; no matrix unless they are ghostable."""
    first = facts[0]
    if len(facts) == 1 and first.matrix == ghostable:
        return first
    return replace(first, T=sum(f.T for f in facts), matrix=ghostable)
