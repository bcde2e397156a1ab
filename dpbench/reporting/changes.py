"""A comparison in lines: what matters first, how much, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dpbench.change import QUANTITIES, Change, Verdict
from dpbench.ratios import Ratio, overall
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import count, duration, percent, size

HEAD = ("", "95 % interval", "of", "implementation", "workload", "base -> new")

ORDER = tuple(Verdict)
_DOWN = {Verdict.FASTER, Verdict.LESS}


def lines(changes: Sequence[Change], everything: bool = False, why: bool = True) -> list[str]:
    """A line for each change, worse ones first, the reasons, and a summary.

    ``everything``: those that are the same, too; ``why``: False where a ruling that follows says it.
    """
    shown = sorted((c for c in changes if everything or c.verdict is not Verdict.SAME), key=weight)
    text = [f"  {line}" for line in aligned([HEAD, *map(cells, shown)], left=len(HEAD))] if shown else []
    reasons: dict[str, list[Change]] = {}
    for change in shown:
        if why and change.reason and change.verdict is not Verdict.SAME:
            reasons.setdefault(change.reason, []).append(change)
    notes = [f"  {_names(own)}: {reason}" for reason, own in reasons.items()]
    return [*text, *([""] if text else []), *notes, *([""] if notes else []), *summary(changes)]


def weight(change: Change) -> tuple[int, float]:
    """What is worse comes first, then what is better, then what is unclear; the larger first."""
    rank = 0 if change.verdict.is_worse else 2 if change.verdict.is_better else 1
    factor = change.factor or 1.0
    return (4 if change.verdict is Verdict.SAME else rank, -max(factor, 1 / factor) if factor > 0 else 0.0)


def said(change: Change) -> str:
    """``1.22x slower``, ``new OOM``."""
    factor = change.factor
    if not factor or not math.isfinite(factor) or change.verdict is Verdict.SAME or change.quantity == "coverage":
        return str(change.verdict)
    if change.quantity != "seconds" and abs(factor - 1) < 0.005:
        return f"{abs(factor - 1):.2g} {change.verdict}"
    return f"{1 / factor if change.verdict in _DOWN else factor:.2f}x {change.verdict}"


def sentence(change: Change) -> str:
    """All of it in one line."""
    between = interval(change.ratio, change.verdict)
    values = _values(change)
    return " ".join(p for p in (f"{_name(change)}, {change.quantity}:", said(change), between, values) if p)


def interval(ratio: Ratio | None, verdict: Verdict) -> str:
    """``[1.18, 1.26]``, in the direction of the verdict."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return ""
    ends = (1 / ratio.high, 1 / ratio.low) if verdict in _DOWN else (ratio.low, ratio.high)
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def summary(changes: Sequence[Change]) -> list[str]:
    """A line for each quantity; for timings, their geometric mean over the cells."""
    text = []
    for quantity in QUANTITIES:
        own = [c for c in changes if c.quantity == quantity]
        if not own:
            continue
        found = Counter(c.verdict for c in own)
        line = f"{quantity}: " + ", ".join(f"{found[v]} {v}" for v in ORDER if found[v])
        ratios = [c.ratio for c in own if c.ratio is not None and math.isfinite(c.ratio.value)]
        if len(ratios) > 1 and (mean := overall(ratios)):
            line += f"; geometric mean of new to base {mean.value:.3f} {interval(mean, Verdict.SLOWER)}".rstrip()
        text.append(line)
    return text


def _names(changes: Sequence[Change]) -> str:
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return _name(changes[0]) + more


def _name(change: Change) -> str:
    return f"{change.cell.implementation} on {change.cell.workload.label()}"


def cells(change: Change) -> tuple[str, ...]:
    """A line of the table; ``HEAD`` is above it."""
    cell = change.cell
    between = interval(change.ratio, change.verdict)
    return said(change), between, change.quantity, cell.implementation, cell.workload.label(), _values(change)


def _values(change: Change) -> str:
    if change.base is None or change.new is None:
        return ""
    shown = {"seconds": duration, "coverage": percent, "flops": count}.get(change.quantity, size)
    base, new = shown(change.base), shown(change.new)
    if base == new and change.base != change.new:
        base, new = f"{change.base:,.0f}", f"{change.new:,.0f}"
    return f"{base} -> {new}"
