"""The history of cells as text, and as objects for machines."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from dpbench.changepoints import fewest
from dpbench.figures import FIGURES
from dpbench.history import Change, History, Point, Series
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import WORDS, count, duration, ratio, significant, size
from dpbench.reporting.remarks import remarks, said_of
from dpbench.reporting.sparkline import sparkline
from dpbench.shift import Interval
from dpbench.slowdown import MIN_EFFECT


def lines(history: History, unicode: bool = False) -> list[str]:
    """For people: a line for each cell, and below it its changes, what differed there and what has to be said."""
    table = aligned(
        [["trend", "first", "last", "runs", "cell"], *(_columns(s, history, unicode) for s in history.series)],
        text_last=True,
    )
    text = [*_heading(history), "", table[0]]
    for series, line in zip(history.series, table[1:], strict=True):
        text.append(line)
        for change in reversed(series.changes):
            text.append(f"    {told(change, series, history)}")
            text += [f"      {reason}" for reason in _reasons(change, series)]
            text.append(f"      {_against(change, series)}")
        text += [f"    {remark}" for remark in remarks(series.points[-1].row)]
    return [*text, "", *_notes(history)]


def told(change: Change, series: Series, history: History) -> str:
    """One change in words: ``1.22x slower [1.18, 1.26] since FILE (2026-11-03)``."""
    after = series.points[change.after]
    partial = change.ratio is not None and (after.row.partial or series.points[change.before].row.partial)
    mark = ", where not all parameters were trained," if partial else ""
    return f"{words(change, history)}{mark} since {Path(after.file).name} ({after.started:%Y-%m-%d})"


def words(change: Change, history: History) -> str:
    """What changed, and by how much: ``1.22x slower [1.18, 1.26]``, ``ok -> out of memory``."""
    found = change.ratio
    if found is None:
        return f"{change.was} -> {change.now}"
    larger = found.value >= 1
    word = history.figure.larger if larger else history.figure.smaller
    if history.figure.counted:
        return f"{_factor(found.value, larger)}{word} ({float(change.was):,.0f} -> {float(change.now):,.0f})"
    if found.low is None or found.high is None:
        return f"{_factor(found.value, larger)}{word} (too few runs on one side for an interval)"
    low, high = (found.low, found.high) if larger else (1 / found.high, 1 / found.low)
    return f"{_factor(found.value, larger)}{word} [{ratio(low)}, {ratio(high)}]"


def as_object(series: Series, history: History) -> dict[str, Any]:
    """One cell for machines."""
    return {
        "implementation": series.cell.implementation,
        "workload": asdict(series.cell.workload),
        "label": series.cell.workload.label(),
        "machine": series.machine,
        "value": history.figure.title,
        "unit": history.figure.unit if history.baseline is None else "ratio",
        "relative_to": history.baseline,
        "points": [
            {
                "file": point.file,
                "started": _time(point.started),
                "outcome": str(point.row.outcome),
                "coverage": point.row.coverage,
                "machine": point.machine,
                "source": point.record.source,
                "revision": (point.environment.get("dpbench") or {}).get("revision"),
                **_estimate(point.figure),
            }
            for point in series.points
        ],
        "changes": [
            {
                "since": series.points[change.after].file,
                "since_started": _time(series.points[change.after].started),
                "before": series.points[change.before].file,
                "before_started": _time(series.points[change.before].started),
                "what": words(change, history),
                "ratio": _estimate(change.ratio)["value"],
                "low": _estimate(change.ratio)["low"],
                "high": _estimate(change.ratio)["high"],
                "was": change.was,
                "now": change.now,
                "differences": list(change.differences),
            }
            for change in series.changes
        ],
    }


def _heading(history: History) -> list[str]:
    runs = history.runs
    suites = ", ".join(dict.fromkeys(run.header.suite for run in runs))
    days = " to ".join(dict.fromkeys(run.header.started[:10] for run in (runs[0], runs[-1])))
    figure = history.figure.title
    if history.baseline is not None:
        figure += f", relative to {history.baseline} in each run (--relative-to none: as it is)"
    elif history.figure.counted:
        figure += ", counted in a trace"
    elif history.figure is FIGURES["seconds"]:
        figure += ", as it is, though two runs share no clock (--relative-to nonprivate)"
    return [f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} of {suites}, {days}", figure]


def _columns(series: Series, history: History, unicode: bool) -> list[str]:
    first, last = (_shown(series.points[i], history) for i in (0, -1))
    bars = sparkline([p.figure.value if p.figure else None for p in series.points], unicode)
    where = f" on machine {series.machine}" if series.machine and _machines(history) > 1 else ""
    cell = f"{series.cell.implementation} on {series.cell.workload.label()}{where}"
    return [bars, first, last, str(len(series.points)), cell]


def _shown(point: Point, history: History) -> str:
    if point.figure is None:
        word = WORDS[point.row.outcome]
        return "-" if word == "ok" else word
    value, unit = point.figure.value, history.figure.unit
    if history.baseline is not None:
        return ratio(value)
    return {"s": duration, "bytes": size, "FLOP": count}.get(unit, significant)(value)


def _factor(value: float, larger: bool) -> str:
    factor = value if larger else 1 / value if value else float("inf")
    if factor == float("inf"):
        return ""
    text = f"{factor:.2f}"
    return f"{significant(100 * (factor - 1), 2)} % " if text == "1.00" else f"{text}x "


def _against(change: Change, series: Series) -> str:
    """What differs from the run before it, and whether the implementation does."""
    before, after = series.points[change.before], series.points[change.after]
    differs = list(change.differences)
    if differs and before.record.source and before.record.source == after.record.source:
        differs.append(f"source of {series.cell.implementation} unchanged")
    return f"from {Path(before.file).name}: {', '.join(differs) or 'nothing that is recorded differs'}"


def _reasons(change: Change, series: Series) -> list[str]:
    """Why it has no figure any more, of an outcome that changed."""
    return [] if change.ratio is not None else said_of(series.points[change.after].row)


def _notes(history: History) -> list[str]:
    changed, cells = sum(bool(series.changes) for series in history.series), len(history.series)
    notes = [f"{cells} {'cell' if cells == 1 else 'cells'}, of which {changed or 'none'} changed"]
    if not any(series.figures for series in history.series):
        return [*notes, f"no run has a figure of this kind; --value takes {', '.join(FIGURES)}"]
    if any(len(series.figures) < len(series.points) for series in history.series):
        notes.append("x in a trend: a run without a figure")
    if history.baseline is not None:
        notes.append(f"a ratio changes with {history.baseline}, too; --relative-to none shows which of the two it was")
    if history.figure.counted:
        return notes
    least = fewest(history.level)
    few = sum(len(series.figures) < least for series in history.series)
    if few:
        notes.append(f"{few} of them have fewer than {least} figures: too few to tell a change from chance")
    notes.append(
        f"told are changes of at least {100 * MIN_EFFECT:g} %, in brackets their 95 % intervals; of cells without any, "
        f"{100 * history.level:g} % show one by chance (--level); a small change may lie a run or two off"
    )
    if _machines(history) > 1:
        notes.append(
            "several machines: each is followed on its own"
            if history.baseline is None
            else "several machines: ratios within a run are compared, which may differ from machine to machine, too"
        )
    return notes


def _machines(history: History) -> int:
    return len({p.machine for series in history.series for p in series.points})


def _time(time: datetime) -> str:
    return time.isoformat(timespec="seconds")


def _estimate(estimate: Interval | None) -> dict[str, float | None]:
    """JSON has no infinity: a ratio to nothing is null."""
    if estimate is None or estimate.value == float("inf"):
        return {"value": None, "low": None, "high": None}
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
