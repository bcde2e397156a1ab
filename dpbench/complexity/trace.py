"""A trace: the operations and the memory of one step. What peaks, layers and rooflines are read off. No torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

MODULES = {
    "1": "forward",
    "2a": "output gradients",
    "2b": "parameter gradients, or the clipped sum of what was kept",
    "3": "ghost norms",
    "4": "per-sample gradients",
    "5": "clipped sum of what was stored",
    "again": "a second backward, of the reweighted losses",
    "update": "noise, scaling and optimizer",
}
"""The paper's modules (Bu et al. 2023, table 1), as a trace tells them apart."""


@dataclass(frozen=True, slots=True)
class Operation:
    """``count`` calls of one operator on the same sizes, for one purpose; FLOPs and bytes are those of all of them."""

    name: str
    module: str
    """One of ``MODULES``; ``2a again`` and ``2b again`` in a second backward."""
    parameter: str
    """The parameter that is multiplied with, or whose gradient this is; empty for work between activations."""
    within: str
    """The model's part that it belongs to, as ``named_modules`` calls it; empty for the losses, or outside."""
    dtype: str
    count: int
    flops: int
    bytes: int
    """Read and written, where nothing stays in a cache from one operator to the next."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What one step did."""

    operations: tuple[Operation, ...] = ()
    peaks: dict[str, int] = field(default_factory=dict)
    """The most bytes of storages alive at once, above what was there before, in each module of the algorithm."""
    alive: dict[str, int] = field(default_factory=dict)
    """Bytes alive at the peak by what made them: ``module of the algorithm: part of the model``."""
    resident: int = 0
    """Bytes that were there before: parameters, buffers, batch, the optimizer's state."""

    @property
    def peak(self) -> int:
        """Bytes alive at once, above what was there before."""
        return max(self.peaks.values(), default=0)

    @property
    def peak_in(self) -> str:
        """The module in which that was."""
        return max(self.peaks, key=lambda module: self.peaks[module], default="1")

    @property
    def total(self) -> int:
        """All FLOPs."""
        return sum(o.flops for o in self.operations)

    @property
    def traffic(self) -> int:
        """All bytes read and written."""
        return sum(o.bytes for o in self.operations)

    @property
    def flops(self) -> Counter[str]:
        """FLOPs of work with parameters by module; what activations do among themselves is in ``others``."""
        return self.by(lambda o: o.module, (o for o in self.operations if o.parameter))

    @property
    def others(self) -> Counter[str]:
        """FLOPs of products between activations by part of the model: attention."""
        return self.by(lambda o: o.within, (o for o in self.operations if not o.parameter))

    def by(self, key: Callable[[Operation], Any], operations: Iterable[Operation] | None = None) -> Counter[Any]:
        """FLOPs by any property of operations."""
        total: Counter[Any] = Counter()
        for o in self.operations if operations is None else operations:
            if o.flops:
                total[key(o)] += o.flops
        return total


def extrapolated(one: Trace, two: Trace, batch: int, start: int = 1, end: int | None = None) -> Trace:
    """The trace of ``batch`` examples from those of ``start`` and ``end`` (one more, if None), along a line.

    Exact where costs grow along lines; nothing is below zero.
    """
    length = 1 if end is None else end - start

    def line(a: int, b: int) -> int:
        return max(0, a + (batch - start) * (b - a) // length)

    first, second = _by_kind(one), _by_kind(two)
    operations = []
    for kind in first | second:
        firsts, seconds = first.get(kind, []), second.get(kind, [])
        if [o.count for o in firsts] != [o.count for o in seconds]:
            # Other calls than before: only their sums lie on a line.
            firsts, seconds = [_sum(kind, firsts)], [_sum(kind, seconds)]
        for a, b in zip(firsts, seconds, strict=True):
            count, flops, bytes_ = (line(getattr(a, n), getattr(b, n)) for n in ("count", "flops", "bytes"))
            if count:
                operations.append(replace(kind, count=count, flops=flops, bytes=bytes_))
    # By module, as one that does not grow with the batch (the optimizer's) may make the peak of small ones.
    peaks = {m: line(one.peaks.get(m, 0), two.peaks.get(m, 0)) for m in one.peaks | two.peaks}
    alive = {label: line(one.alive.get(label, 0), two.alive.get(label, 0)) for label in one.alive | two.alive}
    return Trace(tuple(operations), peaks, alive, line(one.resident, two.resident))


def _by_kind(trace: Trace) -> dict[Operation, list[Operation]]:
    """Operations of several sizes, in their order, by what they are otherwise."""
    found: dict[Operation, list[Operation]] = {}
    for o in trace.operations:
        found.setdefault(replace(o, count=0, flops=0, bytes=0), []).append(o)
    return found


def _sum(kind: Operation, operations: Iterable[Operation]) -> Operation:
    """All of them as one."""
    total = kind
    for o in operations:
        total = replace(total, count=total.count + o.count, flops=total.flops + o.flops, bytes=total.bytes + o.bytes)
    return total
