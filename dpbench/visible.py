"""Which differences the figures of one file could show, cell by cell. No torch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpbench.ratios import Ratio, independent, relative
from dpbench.records import Cell, Outcome, Record
from dpbench.results import Results
from dpbench.slowdown import BETWEEN_RUNS, per_example
from dpbench.stats import MIN_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """One cell."""

    cell: Cell
    outcome: Outcome
    rounds: int
    smallest: float | None
    """The smallest slowdown that a second run like this one is sure of in 4 of 5 tries, as a share; None: none."""
    relative: bool
    """Whether that holds relative to the reference of its run."""
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **asdict(self),
            "cell": {"implementation": self.cell.implementation, "workload": self.cell.workload.label()},
        }


def visible(results: Results, reference: str = "nonprivate") -> list[Visible]:
    """Every cell, as it would compare with a run of the same scatter.

    ``(1 + e) exp((1.96 + 0.84) s) - 1``: with s the standard error of the logarithm of their ratio, an interval lies
    above ``1 + e`` in 80 of 100 tries. e is what runs differ by beside their rounds' scatter.
    """
    held = {r.cell.workload: r for r in results.records if r.cell.implementation == reference}
    return [_of(record, held.get(record.cell.workload)) for record in results.records]


def _of(record: Record, reference: Record | None) -> Visible:
    own = per_example(record)
    other = per_example(reference) if reference is not None and reference is not record else []
    ratio = relative(own, other, own, other) if own and other else independent(own, own) if own else None
    return Visible(
        cell=record.cell,
        outcome=record.outcome,
        rounds=0 if ratio is None else ratio.rounds,
        smallest=None if ratio is None or ratio.log_replicates is None else _smallest(ratio),
        relative=bool(own and other),
        remarks=tuple(_remarks(record, 0 if ratio is None else ratio.rounds)),
    )


def _smallest(ratio: Ratio) -> float:
    assert ratio.log_replicates is not None
    return (1 + BETWEEN_RUNS) * math.exp((1.96 + 0.84) * float(ratio.log_replicates.std())) - 1


def _remarks(record: Record, rounds: int) -> list[str]:
    if record.outcome is not Outcome.OK:
        return [f"{record.outcome}: {record.reason}" if record.reason else str(record.outcome)]
    said = []
    if rounds and rounds < MIN_ROUNDS:
        said.append(f"{rounds} rounds, an interval needs {MIN_ROUNDS}: --rounds {MIN_ROUNDS} or more")
    if unsettled := sum(not r.settled for r in record.rounds):
        said.append(f"still getting faster when its warm-up was over, in {unsettled} of {len(record.rounds)} rounds")
    if throttled := sorted({reason for r in record.rounds for reason in r.state.throttled or ()}):
        said.append(f"clocks were held down: {', '.join(throttled)}")
    return said
