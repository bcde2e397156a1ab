"""What is traced at exactly the batch that is asked for: FLOPs, beside their formulas, memory, and their roofline."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from dpbench.cards import Card
from dpbench.complexity.predict import predict
from dpbench.complexity.roofline import seconds
from dpbench.complexity.survey import FEW, mapped
from dpbench.complexity.trace import Trace
from dpbench.errors import DpbenchError
from dpbench.paper import Quantity
from dpbench.records import MAX, Cell, Workload
from dpbench.reproduction import OOM, Number


@dataclass(frozen=True, slots=True)
class Count:
    """Of one cell; None where there are none, for ``reason``."""

    formula: float | None
    """FLOPs by its modules, without products between activations."""
    traced: float | None
    """FLOPs of all that its code does."""
    need: float | None
    """Bytes: what is resident, and the peak above it."""
    modules: Mapping[str, int] = field(default_factory=dict)
    """Traced, by module."""
    formula_modules: Mapping[str, int] = field(default_factory=dict)
    """By formula, by module."""
    reason: str = ""
    trace: Trace | None = None
    """What a roofline is taken of."""


@dataclass(frozen=True, slots=True)
class Counted:
    """By cell."""

    cells: Mapping[Cell, Count]
    card: Card

    def formula(self, cell: Cell) -> Number:
        """FLOPs by its modules."""
        return self._of(cell, lambda f: f.formula)

    def traced(self, cell: Cell) -> Number:
        """FLOPs of its code."""
        return self._of(cell, lambda f: f.traced)

    def memory(self, cell: Cell) -> Number:
        """GB that the tensors of a step take, with what is there before it."""
        return self._of(cell, lambda f: None if f.need is None else f.need / 1e9)

    def throughput(self, cell: Cell) -> Number:
        """Examples per second on the card, where a step fits into it."""
        found = self.cells.get(cell)
        if found is not None and found.need is not None and found.need > self.card.capacity:
            return OOM
        return self._of(cell, lambda f: None if f.trace is None else self._per_second(f.trace, cell.workload))

    def _per_second(self, trace: Trace, workload: Workload) -> float:
        return workload.physical / seconds(trace, self.card, workload.precision).expected

    def _of(self, cell: Cell, take: Callable[[Count], float | None]) -> Number:
        found = self.cells.get(cell)
        if found is None:
            return Number()
        return Number(word=f"refused: {found.reason}") if found.reason else Number(take(found))


def is_counted(cell: Cell, quantity: Quantity) -> bool:
    """Whether a quantity is taken of a trace at the cell's own batch: below the first of a line there is no line."""
    batch = cell.workload.batch
    return quantity == "flops" or (quantity in ("memory", "throughput") and batch != MAX and batch < FEW)


def count(cells: Iterable[Cell], card: Card, pool: Executor | None) -> Generator[Workload, None, Counted]:
    """Count every cell; each workload is given when it is done."""
    by_workload: dict[Workload, list[str]] = {}
    for cell in cells:
        by_workload.setdefault(cell.workload, []).append(cell.implementation)
    found: dict[Cell, Count] = {}
    counting = mapped(_count, list(by_workload.items()), pool)
    for workload, costs in zip(by_workload, counting, strict=True):
        found |= {Cell(name, workload): flops for name, flops in costs.items()}
        yield workload
    return Counted(found, card)


def _count(asked: tuple[Workload, list[str]]) -> dict[str, Count]:
    workload, names = asked
    try:
        predicted = list(predict(workload, names))
    except Exception as error:
        # Whatever a model raises is a reason, as where lines are traced.
        reason = str(error) if isinstance(error, DpbenchError) else f"{type(error).__name__}: {error}".splitlines()[0]
        return {name: Count(None, None, None, reason=reason) for name in names}
    return {
        p.implementation: Count(
            formula=None if p.analytic is None else float(p.analytic.total()),
            traced=None if p.trace is None else float(p.trace.total),
            need=None if p.trace is None else float(p.trace.resident + p.trace.peak),
            modules={} if p.trace is None else dict(p.trace.flops),
            formula_modules=dict(p.analytic or {}),
            reason=p.reason,
            trace=p.trace,
        )
        for p in predicted
    }
