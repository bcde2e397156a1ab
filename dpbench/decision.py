"""The decision of one layer, and the first of a network that takes a ghost norm: the number of a network's figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpbench.facts import Facts


@dataclass(frozen=True, slots=True)
class Decision:
    """One matrix of a network: 2 T^2 elements of its ghost norm against p d of one per-sample gradient.

    Source: Bu, Mao, Xu 2022 (2205.10683).
    """

    name: str
    T: int
    d: int
    p: int

    @classmethod
    def of(cls, name: Any, T: Any, d: Any, p: Any) -> Decision:
        """Of what a file says; raises TypeError or ValueError where these are no sizes."""
        return cls(str(name), int(T), int(d), int(p))

    @property
    def grams(self) -> int:
        """Elements of the two Gram matrices of an example."""
        return 2 * self.T**2

    @property
    def gradient(self) -> int:
        """Elements of the gradient of an example."""
        return self.p * self.d

    @property
    def is_ghost(self) -> bool:
        """Whether the ghost norm needs less space; where both need as much, it is not taken."""
        return Facts(rule="linear", B=1, T=self.T, d=self.d, p=self.p).ghost_needs_less_space


def first_ghost(layers: Sequence[Decision]) -> int | None:
    """The place of the first layer that takes a ghost norm, counted from 1 in the order of the forward."""
    return next((i for i, layer in enumerate(layers, start=1) if layer.is_ghost), None)
