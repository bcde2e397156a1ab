"""How much longer one side took than the other: ratios of timings in rounds, with intervals by bootstrap.

Both sides of one run were timed in turns, so that a round of one is paired with that of the other: what the machine did
to both cancels. Two runs share nothing; their rounds are resampled apart.

The mean over rounds leaves out a fifth of them at either end, and the bootstrap is of that mean: where a step is long,
a round has few samples, and one that other work fell into would decide alone.
Source: Wilcox, Introduction to Robust Estimation and Hypothesis Testing, 3rd ed. 2012, ch. 4 (20 % trimming with the
percentile bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.stats import MIN_ROUNDS, Rounds, round_medians

Floats = NDArray[np.float64]

TRIMMED = 0.2
"""Of the rounds, at either end."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """New to base: above 1 is slower. The ends of the 95 % interval are None where there are too few rounds."""

    value: float
    low: float | None
    high: float | None
    rounds: int
    """Of the side with fewer."""
    log_replicates: Floats | None = None
    """Logarithms of the ratio in every resample."""

    def as_json(self) -> dict[str, Any]:
        """Value, interval and rounds."""
        return {"value": self.value, "low": self.low, "high": self.high, "rounds": self.rounds}


def paired(new: Rounds, base: Rounds, seed: int = 0) -> Ratio | None:
    """The trimmed geometric mean over rounds of ``median(new) / median(base)`` in that round.

    Rounds are paired by position; one that either side lost is left out. None if no pair is left.
    """
    return _ratio([(1, _log_ratios(new, base))], seed)


def independent(new: Rounds, base: Rounds, seed: int = 0) -> Ratio | None:
    """The ratio of the trimmed geometric means over rounds of their medians; None where a side has no round."""
    return _ratio([(1, _logs(new)), (-1, _logs(base))], seed)


def relative(new: Rounds, new_reference: Rounds, base: Rounds, base_reference: Rounds, seed: int = 0) -> Ratio | None:
    """How a ratio to a reference changed from one run to the other; within a run, rounds are paired."""
    return _ratio([(1, _log_ratios(new, new_reference)), (-1, _log_ratios(base, base_reference))], seed)


def pooled(ratios: Sequence[Ratio]) -> Ratio | None:
    """The geometric mean of ratios, each with the weight of its rounds: one measurement in several parts."""
    return _mean(ratios, [r.rounds for r in ratios])


def overall(ratios: Sequence[Ratio]) -> Ratio | None:
    """The geometric mean of ratios over cells, all of the same weight."""
    return _mean(ratios, [1] * len(ratios))


def _log_ratios(numerator: Rounds, denominator: Rounds) -> Floats:
    pairs = [pair for pair in zip(numerator, denominator, strict=False) if all(map(len, pair))]
    first, second = ([pair[i] for pair in pairs] for i in (0, 1))
    return _logs(first) - _logs(second)


def _logs(rounds: Rounds) -> Floats:
    """Of the medians; not a number for what is no time, so that the ratio is none, either."""
    medians = np.array(round_medians(rounds))
    good = np.isfinite(medians) & (medians > 0)
    return np.where(good, np.log(np.where(good, medians, 1.0)), np.nan)


def _mean(ratios: Sequence[Ratio], weights: Sequence[int]) -> Ratio | None:
    if not ratios:
        return None
    replicates = [r.log_replicates for r in ratios if r.log_replicates is not None]
    value = float(np.average([np.log(r.value) for r in ratios], weights=weights))
    rounds = min(r.rounds for r in ratios)
    if len(replicates) < len(ratios):
        return Ratio(float(np.exp(value)), None, None, rounds)
    return _of(value, np.average(replicates, axis=0, weights=weights), rounds)


def _ratio(sides: Sequence[tuple[int, Floats]], seed: int) -> Ratio | None:
    """``sign * mean(logs)``, trimmed, summed over sides, and its percentile bootstrap.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13.
    """
    rounds = min(logs.size for _, logs in sides)
    if not rounds:
        return None
    if any(np.isnan(logs).any() for _, logs in sides):
        # Trimming must not hide it.
        return Ratio(float("nan"), None, None, rounds)
    value = float(sum(sign * _trimmed(logs) for sign, logs in sides))
    if rounds < MIN_ROUNDS:
        return Ratio(float(np.exp(value)), None, None, rounds)
    generator = np.random.default_rng(seed)
    replicates = np.zeros(RESAMPLES)
    for sign, logs in sides:
        drawn = generator.integers(0, logs.size, (RESAMPLES, logs.size))
        replicates += sign * _trimmed(logs[drawn])
    return _of(value, replicates, rounds)


def _trimmed(x: Floats) -> Any:
    """The mean over the last axis without the smallest and the largest."""
    out = int(TRIMMED * x.shape[-1])
    return np.sort(x, axis=-1)[..., out : x.shape[-1] - out].mean(axis=-1)


def _of(value: float, replicates: Floats, rounds: int) -> Ratio:
    low, high = (float(v) for v in np.exp(np.percentile(replicates, [2.5, 97.5])))
    return Ratio(float(np.exp(value)), low, high, rounds, replicates)
