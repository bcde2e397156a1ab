"""Where a series of runs changed, by E-divisive: energy statistics, and permutations to judge them.

The unit is the run: what the rounds of one run share (the machine's mood that night) is seen between
runs only, so that a run is one value here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.01
"""Chance that a series in which nothing changed is said to have changed."""
SHORTEST = 3
"""Runs between two changes: fewer are outliers for all that one can know."""
OUTLIER = 3.5
"""Robust standard deviations from the median, beyond which a value counts as that far away only."""
BATCH = 2**19
"""Distances that are looked at at once."""

Array = NDArray[np.float64]


def change_points(values: Sequence[float], level: float = LEVEL, seed: int = 0) -> list[int]:
    """The positions of the first value after each change, in order.

    The series is split where and if the two sides of some ``t`` differ,

        Q = max over t < k of  mn/(m+n) E(x[:t], x[t:k]),   m = t, n = k - t,
        E(X, Y) = 2 mean|x - y| - mean|x - x'| - mean|y - y'|,

    and then both parts in the same way. ``k`` may lie before the end, so that a change that was taken
    back is not lost in what came after. A split counts if at most a share ``level`` of the random
    orders of the same values, its own among them, has so large a Q. No distribution is assumed; that
    runs between changes could have come in any order, is. Before that, values of one part are drawn in to
    3.5 robust standard deviations from its median: one wild run neither makes a change nor hides one.

    Source: Matteson and James, A Nonparametric Approach for Multiple Change Point Analysis of
    Multivariate Data, JASA 2014; used on benchmarks by Daly et al., ICPE 2020. The outlier rule is that
    of Iglewicz and Hoaglin, 1993.
    """
    rng = np.random.default_rng(seed)

    def split(x: Array) -> list[int]:
        if len(x) < fewest(level):
            return []
        place = _split(_drawn_in(x), level, rng)
        if place is None:
            return []
        return [*split(x[:place]), place, *(place + later for later in split(x[place:]))]

    return split(np.asarray(values, dtype=np.float64))


def fewest(level: float = LEVEL) -> int:
    """Runs from which on a change can be told at all: of n runs, two of C(n, n/2) orders look as clear as the best."""
    n = 2 * SHORTEST
    while 2 / math.comb(n, n // 2) > level:
        n += 1
    return n


def _split(x: Array, level: float, rng: np.random.Generator) -> int | None:
    """The most likely place of a change, None if it may be chance."""
    (found,), (place,) = _energy(x[None])
    if found <= 0:
        return None
    # Orders enough for ten of them to reach the level; with the tenth that has so large a Q, it is lost.
    orders, larger = math.ceil(10 / level) - 1, 0
    batch = max(1, BATCH // x.size**2)
    for start in range(0, orders, batch):
        drawn = rng.permuted(np.tile(x, (min(batch, orders - start), 1)), axis=1)
        chance, _ = _energy(drawn)
        larger += int(np.sum(chance >= found * (1 - 1e-9)))
        if larger >= 10:
            return None
    return int(place)


def _energy(x: Array) -> tuple[Array, NDArray[np.intp]]:
    """Q and its t for every line of ``x``, each from the sums over blocks of its distances."""
    sums = np.abs(x[:, :, None] - x[:, None, :]).cumsum(2).cumsum(1)
    t, k = _windows(x.shape[1])
    left, both = sums[:, t - 1, t - 1], sums[:, k - 1, k - 1]
    between = sums[:, t - 1, k - 1] - left
    right = both - left - 2 * between
    m, n = t, k - t
    energy = 2 * between / (m * n) - left / (m * (m - 1)) - right / (n * (n - 1))
    scaled = energy * m * n / (m + n)
    best = scaled.argmax(1)
    return scaled.max(1), t[best]


@lru_cache
def _windows(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All t, each with a k for every length up to what is left: not all lengths, but each half as long again."""
    lengths = [SHORTEST]
    while lengths[-1] < n:
        lengths.append(math.ceil(1.5 * lengths[-1]))
    places = [
        (t, t + length)
        for t in range(SHORTEST, n - SHORTEST + 1)
        for length in (*(some for some in lengths if t + some < n), n - t)
    ]
    t, k = np.array(places).T
    return t, k


def _drawn_in(x: Array) -> Array:
    median = np.median(x)
    distance = np.abs(x - median)
    scale = np.median(distance) / 0.6745 or 1.2533 * np.mean(distance)
    return np.clip(x, median - OUTLIER * scale, median + OUTLIER * scale)
