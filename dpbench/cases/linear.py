"""Linear layers."""

from __future__ import annotations

from torch import nn

from dpbench.cases.case import case
from dpbench.cases.problem import Problem, classified, vectors


@case("property")
def two_axes() -> Problem:
    """Vectors, (B, d), the plainest layer there is."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), vectors(5, 6))


@case("property")
def three_axes() -> Problem:
    """A sequence, (B, T, d): an example's gradient is a sum over T, whose norm has cross terms."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()), vectors(5, 4, 6))
