"""The largest batch that fits: memory is traced, not tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpbench.complexity.predict import trace_of
from dpbench.complexity.trace import Trace
from dpbench.records import Workload

STARTS = (2, 4)
"""The two batch sizes whose traces give the first slope."""
MOST = 1 << 20
"""Where memory does not grow with the batch, as where examples are taken one by one."""
STRIDE = 16
"""How many times larger than the largest batch so far the next guess may be."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest batch whose step needs at most ``capacity`` bytes; 0 where not even one example fits."""

    batch: int
    need: int
    """Bytes at that batch: what is resident, and the peak above it. At one example where none fits."""
    next: int | None
    """Bytes that one example more would need; None at the end of the search."""
    trace: Trace


def largest(name: str, workload: Workload, capacity: int) -> Largest:
    """By the slope of two traces; the answer and its successor are traced, too.

    Raises:
        Refused: as the implementation does.
    """
    traces: dict[int, Trace] = {}

    def need(batch: int) -> int:
        if batch not in traces:
            traces[batch] = trace_of(name, replace(workload, batch=batch))
        return traces[batch].resident + traces[batch].peak

    batch = search(need, capacity)
    shown = max(batch, 1)
    return Largest(batch, need(shown), need(batch + 1) if batch < MOST else None, traces[shown])


def search(need: Callable[[int], int], capacity: int) -> int:
    """The largest batch with ``need(batch) <= capacity``, for a need that grows, and almost linearly."""
    low, high = 0, MOST + 1
    points: list[tuple[int, int]] = []
    guesses = list(STARTS)
    while high - low > 1:
        if guesses:
            guess = guesses.pop(0)
        elif len(points) > len(STARTS) + 12:
            guess = (low + high) // 2
        else:
            (a, at_a), (b, at_b) = points[-2:]
            slope = (at_b - at_a) / (b - a)
            guess = int(b + (capacity - at_b) / slope) if slope > 0 else MOST
            # Where something else than the batch made the peak, two points tell little of what comes.
            guess = min(guess, STRIDE * max(a, b))
        guess = min(max(guess, low + 1), high - 1)
        points.append((guess, need(guess)))
        if points[-1][1] <= capacity:
            low = guess
        else:
            high = guess
    return low
