"""Which differences the figures of one file could show, cell by cell. No torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpbench.ratios import independent, relative
from dpbench.records import Cell, Outcome, Record
from dpbench.results import Results
from dpbench.slowdown import per_example
from dpbench.stats import MIN_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """One cell."""

    cell: Cell
    outcome: Outcome
    rounds: int
    smallest: float | None
    """The smallest change of its time that a second run like this one could be sure of, as a share; None: none."""
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
    """Every cell, as it would compare with a run of the same scatter: the upper end of an interval about 1."""
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
        smallest=None if ratio is None or ratio.high is None else ratio.high - 1,
        relative=bool(own and other),
        remarks=tuple(_remarks(record, 0 if ratio is None else ratio.rounds)),
    )


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
