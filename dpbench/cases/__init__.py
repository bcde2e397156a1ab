"""The conformance kit: small problems, each for one way in which the gradient of an example can be wrong."""

# ruff: noqa: I001 (the order of the imports is the order in which the cases are shown)
from __future__ import annotations

from dpbench.cases import linear
from dpbench.cases import convolution
from dpbench.cases import embedding
from dpbench.cases import normalization
from dpbench.cases import attention
from dpbench.cases import tokens
from dpbench.cases import recurrent
from dpbench.cases import sharing
from dpbench.cases import frozen
from dpbench.cases import losses
from dpbench.cases import mixing
from dpbench.cases import autograd
from dpbench.cases import inplace
from dpbench.cases import batch
from dpbench.cases import threshold
from dpbench.cases import numerics
from dpbench.cases.case import CASES, Case
from dpbench.cases.problem import Call, Problem

FAMILIES = (
    linear, convolution, embedding, normalization, attention, tokens, recurrent, sharing, frozen, losses, mixing,
    autograd, inplace, batch, threshold, numerics,
)  # fmt: skip

__all__ = ["CASES", "FAMILIES", "Call", "Case", "Problem"]
