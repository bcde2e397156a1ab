"""How much larger one group of values is than another, with an interval that assumes no distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its 95 % interval; None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    """Values that it comes from."""


CONFIDENCE = 0.95
EXACT = 10
"""Values of the smaller group, above which the rank sum is taken to be normal."""


def ratio_between(before: Sequence[float], after: Sequence[float]) -> Interval:
    """By what factor ``after`` lies above ``before``: the median of all ratios of one to the other.

    The ends of the 95 % interval are those among these ratios at which the test of Mann and Whitney no
    longer tells the groups apart; None where no interval of so few values reaches 95 %. Where it was
    chosen from the same values what the groups are, the true factor lies rather nearer to one.

    Source: Hodges and Lehmann, Estimates of Location Based on Rank Tests, Ann. Math. Stat. 1963.
    """
    logs = np.log(np.asarray(after, dtype=np.float64)[:, None] / np.asarray(before, dtype=np.float64))
    ratios = np.sort(np.exp(logs), axis=None)
    value = float(np.exp(np.median(logs)))
    outside = _outside(min(logs.shape), max(logs.shape))
    if outside is None:
        return Interval(value, rounds=len(before) + len(after))
    return Interval(value, float(ratios[outside]), float(ratios[-1 - outside]), rounds=len(before) + len(after))


@lru_cache
def _outside(m: int, n: int) -> int | None:
    """The largest c with P(U <= c) <= 2.5 %: so many ratios at either end are outside; m <= n."""
    tail = (1 - CONFIDENCE) / 2
    if m > EXACT:
        return math.floor(m * n / 2 - 1.959964 * math.sqrt(m * n * (m + n + 1) / 12) - 0.5)
    total, reached = math.comb(m + n, m), 0
    for c, count in enumerate(_orders(m, n)):
        reached += count
        if reached > tail * total:
            return c - 1 if c else None
    raise AssertionError("the counts of all orders reach their number")


def _orders(m: int, n: int) -> list[int]:
    """In how many orders of m and n values U is 0, 1, ..., mn: coefficients of the Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):
            counts[u] += counts[u - i]
    return counts
