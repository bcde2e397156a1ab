"""FLOPs at full size: by the formulas of an implementation's modules, and counted in a trace of its code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from dpbench.complexity.predict import predict
from dpbench.records import Cell, Workload
from dpbench.reproduction import Number


@dataclass(frozen=True, slots=True)
class Flops:
    """Of one cell; None where there are none, for ``reason``."""

    formula: float | None
    traced: float | None
    modules: Mapping[str, int] = field(default_factory=dict)
    """Traced, by module."""
    formula_modules: Mapping[str, int] = field(default_factory=dict)
    """By formula, by module."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """FLOPs by cell."""

    flops: Mapping[Cell, Flops]

    def formula(self, cell: Cell) -> Number:
        """By its modules, without products between activations."""
        return self._of(cell, lambda f: f.formula)

    def traced(self, cell: Cell) -> Number:
        """All that its code does."""
        return self._of(cell, lambda f: f.traced)

    def _of(self, cell: Cell, take: Callable[[Flops], float | None]) -> Number:
        found = self.flops.get(cell)
        if found is None:
            return Number()
        return Number(word=f"refused: {found.reason}") if found.reason else Number(take(found))


def count(cells: Iterable[Cell], pool: Executor | None) -> Generator[Workload, None, Counted]:
    """Count every cell; each workload is given when it is done."""
    by_workload: dict[Workload, list[str]] = {}
    for cell in cells:
        by_workload.setdefault(cell.workload, []).append(cell.implementation)
    run = map if pool is None else pool.map
    found: dict[Cell, Flops] = {}
    for workload, costs in zip(by_workload, run(_count, by_workload, by_workload.values()), strict=True):
        found |= {Cell(name, workload): flops for name, flops in costs.items()}
        yield workload
    return Counted(found)


def _count(workload: Workload, names: list[str]) -> dict[str, Flops]:
    return {
        p.implementation: Flops(
            formula=None if p.analytic is None else float(p.analytic.total()),
            traced=None if p.trace is None else float(p.trace.total),
            modules={} if p.trace is None else dict(p.trace.flops),
            formula_modules=dict(p.analytic or {}),
            reason=p.reason,
        )
        for p in predict(workload, names)
    }
