"""Who is fastest and who is leanest on one workload, as far as the numbers tell. No torch here.

Two implementations were timed in turns, round by round, so that their ratio has an interval of its own: where that
has 1 in it, or there are too few rounds for it, the two cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpbench import stats
from dpbench.records import Outcome
from dpbench.rows import Row

SAME_BYTES = 0.005
"""Of a peak: two figures that are shown alike are not told apart."""


@dataclass(frozen=True, slots=True)
class Fastest:
    """The private implementation with the highest throughput, and how sure that is."""

    row: Row
    ties: tuple[Row, ...] = ()
    """Others, of which it cannot be told apart although there are rounds enough: the fastest of them first."""
    unsure: bool = False
    """Whether there are too few rounds to tell it apart from some other, or from any."""
    next: Row | None = None
    """The fastest of those that it can be told apart from."""
    lead: stats.Estimate | None = None
    """Throughput / throughput of :attr:`next`."""

    @property
    def is_alone(self) -> bool:
        """Whether it is the fastest, as sure as an interval is."""
        return not self.ties and not self.unsure


def is_private(row: Row, baseline: str = "nonprivate") -> bool:
    """Whether it clips; a baseline does not."""
    return row.implementation != baseline


def comparable(rows: Sequence[Row]) -> list[Row]:
    """Those that did all of the work, and right: private ones that trained everything."""
    return [row for row in rows if is_private(row) and row.outcome is Outcome.OK and not row.partial]


def fastest(rows: Sequence[Row]) -> Fastest | None:
    """Of rows of one workload of one source; None where nothing private has a speed."""
    timed = sorted((r for r in comparable(rows) if r.examples_per_s), key=lambda r: -(r.examples_per_s or 0))
    if not timed:
        return None
    first, *others = timed
    leads = [(other, stats.paired_ratio(other.per_example, first.per_example)) for other in others]
    sure = [(other, lead) for other, lead in leads if lead is not None and lead.rounds >= stats.MIN_ROUNDS]
    apart = [(other, lead) for other, lead in sure if _above_one(lead)]
    told = {id(other) for other, _ in apart}
    ties = tuple(other for other, _ in sure if id(other) not in told)
    following = apart[0] if apart else (None, None)
    return Fastest(first, ties, len(sure) < len(leads), *following)


def _above_one(lead: stats.Estimate) -> bool:
    """Whether the interval lies above 1; where every round does, no mean of some of them does not."""
    return lead.smallest > 1 or (lead.low is not None and lead.low > 1)


def leanest(rows: Sequence[Row]) -> list[Row]:
    """Those with the lowest peak, which is counted and has no interval; several where they are alike.

    At the largest batch each fills the memory, and none is lean.
    """
    weighed = [r for r in comparable(rows) if r.memory is not None and not r.batch_is_max]
    lowest = min((r.memory for r in weighed if r.memory is not None), default=0.0)
    alike = [r for r in weighed if r.memory is not None and r.memory <= lowest * (1 + SAME_BYTES)]
    return sorted(alike, key=lambda r: r.memory or 0)
