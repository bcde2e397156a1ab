"""What is said about samples that were taken in rounds, one fresh process each.

Samples of one process share its memory layout and its luck, so that the round is the unit: a round
is summarised by its median, and intervals come from resampling rounds, never single samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpbench import bootstrap

Rounds = Sequence[Sequence[float]]
"""One inner sequence per round; an empty one is a round that was lost."""

MIN_ROUNDS = 6
"""Below this no interval is given. From n rounds even the whole range, smallest to largest, covers the
true median only with probability 1 - 2^(1-n), which reaches 95 % at n = 6."""

OUTLIER_SCORE = 3.5


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; the ends are None if there are fewer than MIN_ROUNDS rounds."""

    value: float
    by_round: tuple[float, ...]
    """What it is an estimate from."""
    ends: Callable[[Sequence[float]], tuple[float, float]]
    """The bootstrap interval from these; taken when it is asked for."""

    @cached_property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Both ends."""
        return self.ends(self.by_round) if self.rounds >= MIN_ROUNDS else (None, None)

    @property
    def low(self) -> float | None:
        """The lower end."""
        return self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end."""
        return self.interval[1]

    @property
    def smallest(self) -> float:
        """Of the rounds, for a reader who has no interval."""
        return min(self.by_round)

    @property
    def largest(self) -> float:
        """Of the rounds."""
        return max(self.by_round)

    @property
    def rounds(self) -> int:
        """How many there were."""
        return len(self.by_round)


def median(values: Sequence[float]) -> float:
    """The middle of at least one value: for the few of a round in a tenth of the time that numpy takes."""
    if math.isnan(sum(values)):
        return math.nan
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def round_medians(samples: Rounds) -> tuple[float, ...]:
    """The median of every round that has samples."""
    return tuple(median(r) for r in samples if r)


def typical(samples: Rounds) -> Estimate | None:
    """The median of the rounds' medians, None without samples."""
    medians = round_medians(samples)
    return Estimate(median(medians), medians, bootstrap.median_ends) if medians else None


def paired_ratio(numerator: Rounds, denominator: Rounds) -> Estimate | None:
    """The geometric mean over rounds of ``median(numerator) / median(denominator)`` in that round.

    Rounds are paired by position, because both sides were timed interleaved in one process, and a
    round that either side lost is left out. None if no pair is left.
    """
    ratios = tuple(median(n) / median(d) for n, d in zip(numerator, denominator, strict=False) if n and d)
    if not ratios:
        return None
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return Estimate(mean, ratios, bootstrap.geometric_mean_ends)


def scatter(samples: Rounds) -> float | None:
    """The distance between the quartiles of a round relative to its median: of the rounds, the median.

    Quartiles by linear interpolation, definition 7 of Hyndman and Fan (1996), as numpy's.
    """
    spreads = []
    for round_ in samples:
        if len(round_) > 3:
            x = sorted(round_)
            spreads.append((_quartile(x, 3) - _quartile(x, 1)) / _quartile(x, 2))
    return median(spreads) if spreads else None


def outliers(samples: Sequence[float]) -> list[int]:
    """Positions of samples whose modified z-score exceeds 3.5. They are counted, never taken out.

    The score is ``0.6745 (x - median) / MAD``, MAD the median absolute deviation, or where more than
    half of the samples are equal ``(x - median) / (1.2533 mean absolute deviation)``.
    Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC, 1993.
    """
    if len(samples) < 3:
        return []
    middle = median(samples)
    distance = [abs(x - middle) for x in samples]
    scale = median(distance) / 0.6745 or 1.2533 * sum(distance) / len(distance)
    return [i for i, d in enumerate(distance) if d > OUTLIER_SCORE * scale] if scale else []


def _quartile(ordered: Sequence[float], number: int) -> float:
    below, quarters = divmod(number * (len(ordered) - 1), 4)
    low = ordered[below]
    return low + quarters / 4 * (ordered[below + 1] - low) if quarters else low
