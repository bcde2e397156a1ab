"""The largest batch that fits: memory is traced, not tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from dpbench.cards import CONTEXT
from dpbench.complexity.faked import Faked
from dpbench.complexity.line import Line
from dpbench.complexity.trace import Trace
from dpbench.complexity.tracing import Tracer, one_by_one
from dpbench.precision import check_device
from dpbench.records import Workload

STARTS = (15, 16)
"""The two batch sizes whose traces tell how memory grows in each module of the algorithm: not smaller ones, at
which gradients may still make the peak, and activations of another layer."""
MOST = 1 << 20
"""Where memory does not grow with the batch, as where examples are taken one by one."""
MOST_ONE_BY_ONE = 64
"""Where examples are taken one by one and the largest batch is run or advised: no larger one is faster."""
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


def capacity_of(device: str) -> int:
    """Bytes that tensors can have on a CUDA device: its memory without the context."""
    return int(torch.cuda.get_device_properties(check_device(device)).total_memory) - CONTEXT


def worth_running(name: str, most: int = MOST) -> int:
    """The largest batch of an implementation that is worth a run, and at most ``most``."""
    return min(most, MOST_ONE_BY_ONE) if one_by_one(name) else most


def to_run(name: str, workload: Workload, capacity: int) -> Largest:
    """The largest batch that is worth a run: that of a logical batch at most, and few examples if one by one."""
    return largest(name, workload, capacity, workload.logical_batch or worth_running(name))


def largest(name: str, workload: Workload, capacity: int, most: int = MOST, faked: Faked | None = None) -> Largest:
    """At most ``most``, by the slope of two traces; the answer and its successor are traced, too.

    ``faked``: the workload at any batch, where it is there already.

    Raises:
        Refused: as the implementation does.
    """
    with Tracer(name, faked or Faked(replace(workload, batch=1))) as tracer:
        return _searched(tracer, workload, capacity, most)


def _searched(tracer: Tracer, workload: Workload, capacity: int, most: int) -> Largest:
    traces: dict[int, Trace] = {}

    def need(batch: int) -> int:
        if batch not in traces:
            traces[batch] = tracer.at(batch)
        return traces[batch].resident + traces[batch].peak

    # A whole logical batch at once needs no sum beside it, and so may fit where a smaller one does not.
    at_once = workload.logical_batch == most and need(most) <= capacity
    guesses = list(STARTS)
    if not at_once and most > max(STARTS):
        need(STARTS[0]), need(STARTS[1])
        guess = Line(traces[STARTS[0]], traces[STARTS[1]], *STARTS).largest(capacity, most)
        guesses = [guess, guess + 1]
    batch = most if at_once else search(need, capacity, most, guesses)
    shown = max(batch, 1)
    return Largest(batch, need(shown), need(batch + 1) if batch < most else None, traces[shown])


def search(need: Callable[[int], int], capacity: int, most: int = MOST, guesses: Sequence[int] = STARTS) -> int:
    """The largest batch with ``need(batch) <= capacity``, for a need that grows, and almost linearly.

    ``guesses`` are tried first; then it goes on along the last two.
    """
    low, high = 0, most + 1
    points: list[tuple[int, int]] = []
    first = list(guesses)
    while high - low > 1:
        if first:
            guess = first.pop(0)
        elif len(points) > len(guesses) + 12:
            guess = (low + high) // 2
        else:
            (a, at_a), (b, at_b) = points[-2:]
            slope = (at_b - at_a) / (b - a) if a != b else 0
            flat = most if at_b <= capacity else (low + high) // 2
            guess = int(b + (capacity - at_b) / slope) if slope > 0 else flat
            # Where something else than the batch made the peak, two points tell little of what comes.
            guess = min(guess, STRIDE * max(a, b))
        guess = min(max(guess, low + 1), high - 1)
        points.append((guess, need(guess)))
        if points[-1][1] <= capacity:
            low = guess
        else:
            high = guess
    return low
