"""The 95 % percentile bootstrap interval of a statistic of a few values (Efron and Tibshirani, 1993, ch. 13).

n values are drawn from the n there are, with replacement, and the statistic is taken of the draws: its
distribution is cut off at 2.5 % on both sides. That of the median can be had exactly, by counting; that
of the geometric mean comes from draws, always the same ones for the same n.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TAIL = 40
"""One part in so many is cut off on either side."""

RESAMPLES = 1999
"""So many that the ends are two of them, the 50th from below and from above, with nothing in between."""


def median_ends(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the median, over all n^n draws.

    Its low end is the smallest value below or at which lie 2.5 % of the draws' medians, and its high
    end the largest above or at which 2.5 % lie.
    """
    x = sorted(values)
    ways = _ways(len(x))
    medians = sorted(((x[i] + x[j]) / 2, count) for i, j, count in ways)
    return _cut(medians, len(x)), _cut(medians[::-1], len(x))


def geometric_mean_ends(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the geometric mean of positive values, over RESAMPLES draws."""
    import numpy as np

    means = _shares(len(values)) @ np.log(values)
    cut = (RESAMPLES + 1) // TAIL
    low, high = np.exp(np.partition(means, (cut - 1, RESAMPLES - cut))[[cut - 1, RESAMPLES - cut]])
    return float(low), float(high)


def _cut(medians: Sequence[tuple[float, int]], n: int) -> float:
    seen = 0
    for value, count in medians:
        seen += count
        if seen * TAIL >= n**n:
            return value
    raise AssertionError("all draws together are n^n")


@cache
def _ways(n: int) -> list[tuple[int, int, int]]:
    """i <= j and how many of the n^n draws have the median (x_i + x_j) / 2, x the values in order.

    Of an odd number it is one of them. Of n = 2m the m-th in order is x_i, the next one a larger x_j, if
    m draws have their largest at i and the others their smallest at j.
    """
    m = (n + 1) // 2

    def up_to(i: int) -> int:
        """Draws whose m-th in order is one of the first i values: at least m of them are."""
        return sum(comb(n, t) * i**t * (n - i) ** (n - t) for t in range(m, n + 1))

    at = [up_to(i + 1) - up_to(i) for i in range(n)]
    if n % 2:
        return [(i, i, at[i]) for i in range(n)]
    apart = [
        (i, j, comb(n, m) * ((i + 1) ** m - i**m) * ((n - j) ** m - (n - j - 1) ** m))
        for i in range(n)
        for j in range(i + 1, n)
    ]
    same = [(i, i, at[i] - sum(count for k, _, count in apart if k == i)) for i in range(n)]
    return same + apart


@cache
def _shares(n: int) -> NDArray[np.float64]:
    """(RESAMPLES, n): how often each value was drawn, over n."""
    import numpy as np

    drawn = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    shares: NDArray[np.float64] = (drawn[:, :, None] == np.arange(n)).mean(axis=1)
    return shares
