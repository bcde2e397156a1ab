"""Of the parameters that were asked to be trained: which were, and how their norms were found."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dpbench.errors import unknown


class NormMethod(StrEnum):
    """How the squared per-sample norms of one parameter are found."""

    GHOST = "ghost"
    """From activations and output gradients: no per-sample gradient is formed."""
    INSTANTIATED = "instantiated"
    """From per-sample gradients, where a ghost norm would do or another use of the parameter has one."""
    VECTOR = "vector"
    """From per-sample gradients of biases, scales and bare parameters: instantiated whatever the algorithm."""
    GENERIC = "generic"
    """From per-sample gradients by vmap of a function's vector-Jacobian product: right, and slow."""
    LOOP = "loop"
    """From the gradient of one example at a time."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Elements of parameters: ``asked`` to be trained, and ``trained``, which got a gradient.

    ``frozen``: the parameters that got none, by name, with their elements. What is neither was
    refused. ``norms``: the elements by the :class:`NormMethod` that found their norms; empty for an
    implementation that does not tell, or that takes no norms.
    """

    asked: int
    trained: int
    frozen: dict[str, int] = field(default_factory=dict)
    norms: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Trained / asked."""
        return self.trained / self.asked if self.asked else 1.0

    @property
    def refused(self) -> int:
        """Elements that the implementation refused by name."""
        return self.asked - self.trained - sum(self.frozen.values())

    def by(self, method: str) -> float | None:
        """The share of what was asked whose norms were found so; None where nothing is known."""
        return self.norms.get(method, 0) / self.asked if self.norms and self.asked else None


def covered(asked: Mapping[str, int], given: Container[str], methods: Mapping[str, str]) -> Coverage:
    """The coverage of parameters with their elements, of which ``given`` got a gradient.

    Raises:
        DpbenchError: if ``methods``, by parameter, names a parameter or a method that there is not.
    """
    norms: dict[str, int] = {}
    for name, method in methods.items():
        if name not in asked:
            raise unknown("parameter in norm_methods", name, asked)
        if method not in list(NormMethod):
            raise unknown(f"norm method of {name}", method, list(NormMethod))
        if name in given:
            norms[str(method)] = norms.get(method, 0) + asked[name]
    frozen = {name: size for name, size in asked.items() if name not in given}
    return Coverage(sum(asked.values()), sum(asked.values()) - sum(frozen.values()), frozen, norms)
