"""The conformance kit: small problems, each for one way in which the gradient of an example can be wrong."""

from __future__ import annotations

from dpbench.cases import linear
from dpbench.cases.case import CASES, Case
from dpbench.cases.problem import Call, Problem

__all__ = ["CASES", "Call", "Case", "Problem", "linear"]
