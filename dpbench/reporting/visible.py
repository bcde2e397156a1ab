"""Which differences a file could show, in lines."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.records import Workload
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import WORDS, percent
from dpbench.visible import Visible

HEAD = ("implementation", "rounds", "differences from")


def lines(seen: Sequence[Visible]) -> list[str]:
    """A block for each workload."""
    text = []
    groups: dict[Workload, list[Visible]] = {}
    for one in seen:
        groups.setdefault(one.cell.workload, []).append(one)
    for workload, own in groups.items():
        text += [workload.label(), *(f"  {line}" for line in aligned([HEAD, *map(_cells, own)]))]
        text += [f"    {one.cell.implementation}: {remark}" for one in own for remark in one.remarks]
        text.append("")
    timed = [one for one in seen if one.rounds]
    sure = [one for one in timed if one.smallest is not None]
    text.append(
        f"{len(sure)} of {len(timed)} timed cells have an interval, so that a second run can be compared with this"
    )
    if any(one.relative for one in seen):
        text.append("differences: of the time relative to nonprivate, to a second run that scatters as much")
    return text


def _cells(one: Visible) -> tuple[str, ...]:
    if not one.rounds:
        return one.cell.implementation, "-", WORDS[one.outcome]
    return one.cell.implementation, str(one.rounds), "-" if one.smallest is None else percent(one.smallest)
