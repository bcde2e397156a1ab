"""What was measured here, taken from records as the quantities that papers print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpbench.paper import Quantity
from dpbench.records import Cell, Outcome
from dpbench.reporting.numbers import WORDS
from dpbench.reproduction import OOM, Number
from dpbench.rows import Row


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows by cell, of one run of a figure."""

    rows: Mapping[Cell, Row]
    file: str = ""
    """The name of the results file that they are from."""

    def of(self, cell: Cell | None, quantity: Quantity) -> Number:
        """One quantity of one cell, or the word for what became of it."""
        row = self.rows.get(cell) if cell is not None else None
        if row is None:
            return Number()
        if row.outcome is Outcome.OUT_OF_MEMORY:
            return OOM
        if row.outcome is not Outcome.OK:
            return Number(word=f"{WORDS[row.outcome]}: {row.reason}")
        if row.partial:
            return Number(word=f"not all parameters trained: {', '.join(row.frozen[:3])}")
        return _OF[quantity](row)

    def ratio(self, cell: Cell | None, quantity: Quantity) -> Number | None:
        """Its ratio to the baseline, where rounds were paired; None: by its values."""
        row = self._whole(cell)
        if row is None or quantity != "throughput" or row.speed_relative is None:
            return None
        return Number(row.speed_relative, low=row.speed_relative_low, high=row.speed_relative_high)

    def expected(self, cell: Cell | None) -> float | None:
        """Seconds of an example on this machine by its roofline, where it is calibrated."""
        row = self._whole(cell)
        if row is None or row.record.traced is None or row.record.traced.roofline is None or not row.record.examples:
            return None
        return row.record.traced.roofline.expected / row.record.examples

    def _whole(self, cell: Cell | None) -> Row | None:
        """The row of what is right, and trained everything."""
        row = self.rows.get(cell) if cell is not None else None
        return row if row is not None and row.outcome is Outcome.OK and not row.partial else None


def _throughput(row: Row) -> Number:
    time, rate = row.time, row.examples_per_s
    if time is None or rate is None:
        return Number()
    low, high = time.interval
    return Number(rate, low=high and rate * time.value / high, high=low and rate * time.value / low)


def _largest(row: Row) -> Number:
    return Number() if row.batch is None else Number(float(row.batch))


def _memory(row: Row) -> Number:
    return Number() if row.memory is None or row.resident is None else Number((row.memory + row.resident) / 1e9)


def _flops(row: Row) -> Number:
    return Number() if row.flops is None else Number(float(row.flops))


_OF: dict[Quantity, Callable[[Row], Number]] = {
    "throughput": _throughput,
    "max_batch": _largest,
    "memory": _memory,
    "flops": _flops,
}
