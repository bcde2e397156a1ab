"""Roofline times: how long a trace takes on a card, from nothing but the card's peaks.

An operator takes as long as its arithmetic or its traffic, whichever is longer. Kernel fusion, caches and
what kernels fall short of the peaks are not modelled, and nothing is fitted to measured times.
Source: Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model".
"""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.cards import Card
from dpbench.complexity.trace import Operation, Trace

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float64": "fp64"}
"""By dtype; float32 is multiplied in fp32, or in tf32 where the workload says so."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of one step. What is compared between implementations is ``expected``."""

    low: float
    """The longer of all arithmetic and all traffic: operators overlap perfectly."""
    expected: float
    """Each operator as long as the longest of its arithmetic, its traffic and its launch."""
    high: float
    """Arithmetic, traffic and launches one after another."""


def seconds(trace: Trace, card: Card, precision: str) -> Seconds:
    """The roofline of one step in a workload's ``precision``.

    Raises:
        DpbenchError: the card lacks a precision that the trace needs.
    """
    arithmetic = [_arithmetic(o, card, precision) for o in trace.operations]
    traffic = [o.bytes / card.bandwidth for o in trace.operations]
    launches = [o.count * card.launch for o in trace.operations]
    return Seconds(
        low=max(sum(arithmetic), sum(traffic)),
        expected=sum(map(max, arithmetic, traffic, launches)),
        high=sum(arithmetic) + sum(traffic) + sum(launches),
    )


def _arithmetic(o: Operation, card: Card, precision: str) -> float:
    if not o.flops:
        return 0.0
    single = "tf32" if precision == "tf32" else "fp32"
    return o.flops / card.peak(PRECISIONS.get(o.dtype, single))
