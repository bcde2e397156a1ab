"""How well this machine repeats itself: one small computation, again and again for two seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from dpbench.reporting.numbers import significant
from dpbench.system.finding import Finding, disturbs, ok

SECONDS, WARM_UP = 2.0, 0.2
ROUNDS = 20
"""Blocks of samples that stand for rounds: as many as a comparison has by default."""
SAMPLE = 2e-3
"""Seconds of one sample, at least: far above the resolution of the clock."""
EDGE = 3
"""Blocks that there are at least before a step and after it."""
WORTH_SEEING = 0.03
"""The difference that a comparison is expected to tell."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What was seen."""

    samples: int
    spread: float
    """Distance between the quartiles of all samples, over their median."""
    step: float
    """The largest lasting change: of the median of the blocks after a moment over that of those before, less one."""
    in_turns: float
    """Smallest difference that 20 rounds would show between two that take turns."""


def probe(
    action: Callable[[], object] | None = None, clock: Callable[[], float] = perf_counter, seconds: float = SECONDS
) -> Noise:
    """Time ``action`` over and over; without one, matrix products of torch with all of its threads."""
    action = action or _products()
    start, calls = clock(), 0
    while clock() - start < WARM_UP:
        action()
        calls += 1
    each = max(1, round(SAMPLE * calls / WARM_UP))
    samples: list[float] = []
    start = clock()
    while clock() - start < seconds or len(samples) < 4 * ROUNDS:
        before = clock()
        for _ in range(each):
            action()
        samples.append(clock() - before)
    return summary(np.asarray(samples))


def summary(samples: NDArray[np.float64]) -> Noise:
    """Of samples in the order they were taken.

    Every second sample of a block stands for one side of a comparison, the others for its other side. With s the
    standard deviation over n blocks of log(median / median), a true difference of (1.96 + 0.84) s / sqrt(n) is
    found at the 5 % level in 80 of 100 comparisons.
    """
    blocks = np.array_split(samples, ROUNDS)
    medians = np.array([np.median(b) for b in blocks])
    ratios = np.array([np.log(np.median(b[::2]) / np.median(b[1::2])) for b in blocks])
    low, middle, high = np.percentile(samples, [25, 50, 75])
    cuts = range(EDGE, ROUNDS - EDGE + 1)
    steps = [np.log(np.median(medians[k:]) / np.median(medians[:k])) for k in cuts]
    largest = max(steps, key=abs)
    return Noise(
        samples=len(samples),
        spread=float((high - low) / middle),
        step=float(np.expm1(largest)),
        in_turns=float(np.expm1((1.96 + 0.84) * ratios.std(ddof=1) / np.sqrt(ROUNDS))),
    )


def finding(noise: Noise) -> Finding:
    """In words."""
    text = (
        f"the quartiles of {noise.samples} samples lie {_percent(noise.spread)} apart, the largest lasting step is "
        f"{_percent(noise.step)}. {ROUNDS} rounds would tell {_percent(noise.in_turns)} between two that take turns, "
        "if fresh processes add nothing; between two runs, nothing below the step"
    )
    if max(noise.in_turns, abs(noise.step)) <= WORTH_SEEING:
        return ok("noise", text)
    return disturbs("noise", text, "mend what disturbs, compare within one run only, take more rounds")


def _percent(share: float) -> str:
    return f"{significant(100 * share, 2)} %"


def _products() -> Callable[[], object]:
    import torch

    a, b = torch.randn(2, 256, 256)
    return lambda: torch.mm(a, b)
