"""What a comparison says: one change for each quantity of each cell. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpbench.errors import unknown
from dpbench.ratios import Ratio
from dpbench.records import Cell, Outcome, plain


class Verdict(StrEnum):
    """What became of one quantity of one cell."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    LESS = "less"
    MORE = "more"
    INCONCLUSIVE = "inconclusive"
    NEW_OOM = "new OOM"
    OOM_GONE = "OOM gone"
    NEWLY_WRONG = "newly wrong"
    NEWLY_REFUSED = "newly refused"
    NEWLY_FAILED = "newly failed"
    WORKS_NOW = "works now"
    LESS_COVERAGE = "less coverage"
    MORE_COVERAGE = "more coverage"
    ONLY_IN_BASE = "only in base"
    ONLY_IN_NEW = "only in new"
    NOT_COMPARABLE = "not comparable"

    @property
    def is_worse(self) -> bool:
        """Whether whoever made the change should look."""
        return self in _WORSE

    @property
    def is_better(self) -> bool:
        """Whether it is the base that is out of date."""
        return self in _BETTER


_WORSE = (
    Verdict.NEWLY_WRONG,
    Verdict.NEWLY_FAILED,
    Verdict.NEW_OOM,
    Verdict.NEWLY_REFUSED,
    Verdict.LESS_COVERAGE,
    Verdict.SLOWER,
    Verdict.MORE,
    Verdict.ONLY_IN_BASE,
)
_BETTER = (Verdict.WORKS_NOW, Verdict.OOM_GONE, Verdict.MORE_COVERAGE, Verdict.FASTER, Verdict.LESS)

_OTHERWISE = {
    Outcome.OUT_OF_MEMORY: Verdict.NEW_OOM,
    Outcome.WRONG: Verdict.NEWLY_WRONG,
    Outcome.REFUSED: Verdict.NEWLY_REFUSED,
    Outcome.FAILED: Verdict.NEWLY_FAILED,
    Outcome.TIMED_OUT: Verdict.NEWLY_FAILED,
}


def verdicts(names: Iterable[str]) -> set[Verdict]:
    """Those that are named: ``slower``, ``new-oom``; ``worse`` stands for all that are.

    Raises:
        DpbenchError: there is none of that name.
    """
    known = {str(v).lower().replace(" ", "-"): v for v in Verdict}
    found: set[Verdict] = set()
    for name in filter(None, (name.strip() for name in names)):
        if name == "worse":
            found |= set(_WORSE)
        elif (verdict := known.get(name.lower().replace(" ", "-"))) is not None:
            found.add(verdict)
        else:
            raise unknown("verdict", name, [*known, "worse"])
    return found


def turn(base: Outcome, new: Outcome) -> Verdict:
    """The verdict on what became of a cell."""
    if base is new:
        return Verdict.SAME
    if new is not Outcome.OK:
        return _OTHERWISE[new]
    return Verdict.OOM_GONE if base is Outcome.OUT_OF_MEMORY else Verdict.WORKS_NOW


QUANTITIES = {
    "outcome": "what became of the cell",
    "coverage": "parameters that got a gradient / parameters that were asked to be trained",
    "seconds": "measured time of one example",
    "memory": "measured peak memory",
    "flops": "FLOPs of a step, counted in a trace",
    "bytes": "bytes that a step reads and writes, counted in a trace",
    "peak": "peak memory, counted in a trace",
}
EXACT = ("flops", "bytes", "peak")
"""Counted: any difference is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One quantity of one cell in both."""

    cell: Cell
    """As the new one calls it, or the only one that has it."""
    quantity: str
    """One of ``QUANTITIES``."""
    verdict: Verdict
    base: float | None = None
    new: float | None = None
    ratio: Ratio | None = None
    """Of timings, with its interval: above 1 is slower."""
    control: Ratio | None = None
    """The base beside itself, timed in the same way."""
    reason: str = ""

    @property
    def factor(self) -> float | None:
        """New to base."""
        if self.ratio is not None:
            return self.ratio.value
        return self.new / self.base if self.base and self.new is not None else None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        value = {
            "implementation": self.cell.implementation,
            "workload": self.cell.workload.label(),
            "key": self.cell.key(),
            "quantity": self.quantity,
            "verdict": str(self.verdict),
            "base": self.base,
            "new": self.new,
            "ratio": self.factor,
            "interval": None if self.ratio is None else [self.ratio.low, self.ratio.high],
            "rounds": None if self.ratio is None else self.ratio.rounds,
            "control": None if self.control is None else self.control.value,
            "reason": self.reason,
        }
        return {name: plain(v) for name, v in value.items()}
