"""The figures of a cell that are followed from run to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpbench.errors import DpbenchError
from dpbench.records import Record, Traced
from dpbench.rows import Row
from dpbench.shift import Interval

ROUNDING = 2.0**-53
"""Of float64: errors below it are alike."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One of them."""

    title: str
    unit: str
    larger: str
    """``1.22x`` what, where the later figure is the larger one."""
    smaller: str
    absolute: Callable[[Record, Row], Interval | None]
    relative: Callable[[Row], Interval | None] | None = None
    """As a ratio to the baseline; None: it has none."""
    counted: bool = False
    """Not measured: it has no noise, and is the same on every machine."""

    def of(self, record: Record, row: Row, as_ratio: bool) -> Interval | None:
        """The figure of a cell that is ok, or None where it was not taken."""
        return self.relative(row) if as_ratio and self.relative else self.absolute(record, row)

    def check_relative(self, name: str, baseline: str) -> None:
        """Raise unless it can be given relative to an implementation."""
        if self.relative is None:
            able = ", ".join(k for k, v in FIGURES.items() if v.relative)
            raise DpbenchError(f"{name} cannot be given relative to {baseline}, expected one of {able}")


def _seconds(record: Record, row: Row) -> Interval | None:
    """Of a step; where its size is what fits, and another in every run, of one example."""
    if row.seconds is None:
        return None
    per = record.examples if row.batch_is_max and record.cell.workload.logical_batch is None else 1
    low, high = (v if v is None else v / (per or 1) for v in (row.seconds_low, row.seconds_high))
    return Interval(row.seconds / (per or 1), low, high, rounds=row.rounds)


def _seconds_ratio(row: Row) -> Interval | None:
    if not row.speed_relative:
        return None
    low, high = (v if v is None else 1 / v for v in (row.speed_relative_high, row.speed_relative_low))
    return Interval(1 / row.speed_relative, low, high, rounds=row.rounds)


def _plain(value: float | None) -> Interval | None:
    return Interval(value) if value else None


def _error(row: Row) -> Interval | None:
    return None if row.parity_error is None else Interval(max(row.parity_error, ROUNDING))


def _traced(count: Callable[[Traced], int]) -> Callable[[Record, Row], Interval | None]:
    return lambda record, row: None if record.traced is None else Interval(count(record.traced))


FIGURES = {
    "seconds": Figure("time of a step", "s", "slower", "faster", _seconds, _seconds_ratio),
    "memory": Figure(
        "peak memory above parameters and batch",
        "bytes",
        "more memory",
        "less memory",
        lambda record, row: _plain(row.memory),
        lambda row: _plain(row.memory_relative),
    ),
    "process_peak": Figure(
        "peak memory of the process",
        "bytes",
        "more memory",
        "less memory",
        lambda record, row: _plain(row.process_peak),
    ),
    "traced_flops": Figure(
        "FLOPs of a step", "FLOP", "more FLOPs", "fewer FLOPs", _traced(lambda traced: traced.flops), counted=True
    ),
    "traced_bytes": Figure(
        "bytes read and written", "bytes", "more traffic", "less traffic", _traced(lambda t: t.bytes), counted=True
    ),
    "traced_peak": Figure(
        "traced peak memory", "bytes", "more memory", "less memory", _traced(lambda traced: traced.peak), counted=True
    ),
    "error": Figure(
        "relative error of the gradient", "", "larger error", "smaller error", lambda record, row: _error(row)
    ),
}
