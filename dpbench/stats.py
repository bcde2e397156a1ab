"""What is said about samples that were taken in rounds, one fresh process each.

Samples of one process share its memory layout and its luck, so that the round is the unit: a round
is summarised by its median, and intervals come from resampling rounds, never single samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rounds = Sequence[Sequence[float]]
"""One inner sequence per round; an empty one is a round that was lost."""

MIN_ROUNDS = 6
"""Below this no interval is given. From n rounds even the whole range, smallest to largest, covers the
true median only with probability 1 - 2^(1-n), which reaches 95 % at n = 6."""

RESAMPLES = 2000
OUTLIER_SCORE = 3.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; the ends are None if there are fewer than MIN_ROUNDS rounds."""

    value: float
    low: float | None = None
    high: float | None = None
    smallest: float | None = None
    """Of the rounds, for a reader who has no interval."""
    largest: float | None = None
    rounds: int = 0


def round_medians(samples: Rounds) -> NDArray[np.float64]:
    """The median of every round that has samples."""
    return np.array([np.median(r) for r in samples if len(r)], dtype=np.float64)


def typical(samples: Rounds, seed: int = 0) -> Estimate | None:
    """The median of the rounds' medians, None without samples."""
    return _estimate(round_medians(samples), _median, seed)


def paired_ratio(numerator: Rounds, denominator: Rounds, seed: int = 0) -> Estimate | None:
    """The geometric mean over rounds of ``median(numerator) / median(denominator)`` in that round.

    Rounds are paired by position, because both sides were timed interleaved in one process, and a
    round that either side lost is left out. None if no pair is left.
    """
    pairs = [(n, d) for n, d in zip(numerator, denominator, strict=False) if len(n) and len(d)]
    ratios = np.array([np.median(n) / np.median(d) for n, d in pairs], dtype=np.float64)
    return _estimate(ratios, _geometric_mean, seed)


def scatter(samples: Rounds) -> float | None:
    """The distance between the quartiles of a round relative to its median: of the rounds, the median."""
    spreads = []
    for round_ in samples:
        if len(round_) > 3:
            low, middle, high = np.percentile(round_, [25, 50, 75])
            spreads.append((high - low) / middle)
    return float(np.median(spreads)) if spreads else None


def outliers(samples: Sequence[float]) -> list[int]:
    """Positions of samples whose modified z-score exceeds 3.5. They are counted, never taken out.

    The score is ``0.6745 (x - median) / MAD``, MAD the median absolute deviation, or where more than
    half of the samples are equal ``(x - median) / (1.2533 mean absolute deviation)``.
    Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC, 1993.
    """
    x = np.asarray(samples, dtype=np.float64)
    if x.size < 3:
        return []
    distance = np.abs(x - np.median(x))
    scale = np.median(distance) / 0.6745 or 1.2533 * np.mean(distance)
    return [int(i) for i in np.flatnonzero(distance > OUTLIER_SCORE * scale)] if scale else []


def _median(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.median(x, axis=-1))


def _geometric_mean(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(np.log(x).mean(axis=-1)))


def _estimate(
    x: NDArray[np.float64], statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], seed: int
) -> Estimate | None:
    """The statistic of ``x`` and the percentile bootstrap of it (Efron and Tibshirani, 1993, ch. 13)."""
    if not x.size:
        return None
    low = high = None
    if x.size >= MIN_ROUNDS:
        drawn = np.random.default_rng(seed).integers(0, x.size, (RESAMPLES, x.size))
        low, high = (float(v) for v in np.percentile(statistic(x[drawn]), [2.5, 97.5]))
    return Estimate(float(statistic(x)), low, high, float(x.min()), float(x.max()), int(x.size))
