"""The trace of any batch, along the line through two small ones."""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.complexity.trace import Trace, extrapolated


@dataclass(frozen=True, slots=True)
class Line:
    """What one implementation costs at every batch size, from its traces at ``start`` and ``end`` examples."""

    first: Trace
    second: Trace
    start: int
    end: int

    def at(self, batch: int) -> Trace:
        """The trace of ``batch`` examples."""
        return extrapolated(self.first, self.second, batch, self.start, self.end)

    def need(self, batch: int) -> int:
        """Bytes of a step: what is resident, and the peak above it."""
        trace = self.at(batch)
        return trace.resident + trace.peak

    def largest(self, capacity: int, most: int) -> int:
        """The largest batch that needs at most ``capacity`` bytes, and is at most ``most``; 0 if none."""
        fits = most
        for module in self.first.peaks | self.second.peaks:
            one, two = (t.resident + t.peaks.get(module, 0) for t in (self.first, self.second))
            if two > one:
                fits = min(fits, self.start + (capacity - one) * (self.end - self.start) // (two - one))
            elif two > capacity:
                fits = 0
        # Rounding along the line may be off by one.
        return max(fits - (fits > 0 and self.need(fits) > capacity), 0)
