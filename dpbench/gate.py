"""Whether a change may pass: every comparison held against the rules. What cannot be established does not pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dpbench.change import EXACT, Change, Verdict
from dpbench.ratios import Ratio
from dpbench.records import Cell, Outcome, Record
from dpbench.rules import Rules

FINE, TRIPPED, FAILED, UNKNOWN = 0, 1, 3, 4
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What does not pass, each with why, and what a reader should know besides."""

    tripped: list[tuple[Change, str]] = field(default_factory=list)
    failed: list[tuple[Change, str]] = field(default_factory=list)
    """Cells that broke, so that nothing can be said of them."""
    unknown: list[tuple[Change, str]] = field(default_factory=list)
    """Comparisons that could not be made, or said nothing where that is to fail."""
    warned: list[tuple[Change, str]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The most certain reason not to pass."""
        return TRIPPED if self.tripped else FAILED if self.failed else UNKNOWN if self.unknown else FINE


def judge(changes: Sequence[Change], records: Sequence[Record], rules: Rules, wanted: set[Verdict]) -> Ruling:
    """Hold changes against the rules.

    ``records`` are those of the new side, ``wanted`` the verdicts that do not pass besides.
    """
    ruling = Ruling()
    by_cell: dict[Cell, Record] = {}
    for record in records:
        # Of a cell in two suites, the worst counts.
        if record.cell not in by_cell or record.outcome.is_failure:
            by_cell[record.cell] = record
    for change in changes:
        found = by_cell.get(change.cell)
        if found is None:
            if change.quantity == "outcome":
                where = ruling.tripped if rules.on_missing == "fail" else ruling.warned
                where.append((change, "the cell is missing"))
        elif change.quantity == "outcome" and found.outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
            ruling.failed.append((change, f"{found.outcome}: {found.reason}"))
        elif change.quantity == "outcome" and found.outcome is Outcome.WRONG:
            ruling.tripped.append((change, f"wrong: {found.reason}"))
        elif change.verdict in wanted:
            ruling.tripped.append((change, "the base is out of date" if change.verdict.is_better else change.reason))
        else:
            _held(change, rules, ruling)
    return ruling


def _held(change: Change, rules: Rules, ruling: Ruling) -> None:
    factor, quantity = change.factor, change.quantity
    if change.verdict is Verdict.BASE_BROKE:
        ruling.unknown.append((change, f"nothing can be held against it: {change.reason}"))
        return
    if quantity in ("outcome", "coverage"):
        if change.verdict.is_worse:
            ruling.tripped.append((change, change.reason))
        return
    if not all(math.isfinite(v) and v >= 0 for v in (change.new, factor) if v is not None):
        ruling.tripped.append((change, "a figure that is no number"))
    elif change.verdict is Verdict.NOT_COMPARABLE:
        ruling.unknown.append((change, change.reason))
    elif change.ratio is not None and change.ratio.rounds < rules.min_rounds:
        ruling.tripped.append((change, f"{change.ratio.rounds} rounds, {rules.min_rounds} are required (min_rounds)"))
    elif change.verdict is Verdict.INCONCLUSIVE:
        where = ruling.unknown if rules.on_inconclusive == "fail" else ruling.warned
        where.append((change, change.reason or _wide(change.ratio)))
    elif change.verdict.is_worse and factor is not None:
        limit = rules.limit(change.cell, quantity)
        if factor > 1 + limit:
            allowed = "no growth is allowed" if not limit else f"{limit:.0%} more is allowed"
            ruling.tripped.append((change, f"{allowed}{'; ' + change.reason if change.reason else ''}"))
        else:
            ruling.warned.append((change, f"within the {limit:.0%} that are allowed"))
    elif change.verdict.is_worse:
        ruling.tripped.append((change, change.reason))


def _wide(ratio: Ratio | None) -> str:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "no interval"
    return "its interval holds both no difference and one that would count: more rounds make it narrower"


def blamed_on_versions(changes: Sequence[Change], differences: Sequence[str]) -> list[Change]:
    """Counted costs that differ while the software does, too: not to be told apart, so not comparable."""
    if not differences:
        return list(changes)
    reason = f"the base was counted with other software ({', '.join(differences)}); count it anew: --base REF"
    return [
        replace(c, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        if c.quantity in EXACT and c.verdict in (Verdict.MORE, Verdict.LESS)
        else c
        for c in changes
    ]


def seen_once(changes: Sequence[Change]) -> list[Change]:
    """Times that two runs tell apart, which nobody has repeated: a gate that stands on them would cry wolf."""
    return [
        replace(
            c,
            verdict=Verdict.INCONCLUSIVE,
            reason=f"{c.verdict} in another run than the base, seen once; --base REF times both in turns",
        )
        if c.quantity == "seconds" and c.verdict in (Verdict.SLOWER, Verdict.FASTER)
        else c
        for c in changes
    ]
