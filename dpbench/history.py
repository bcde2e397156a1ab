"""The cells of many runs over time: a figure of each run, where it changed, and what else changed there.

A run is a results file. Figures of seconds and memory are followed on one machine at a time, or as ratios
to a baseline of the same run; what is counted, not measured, is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from dpbench.changepoints import LEVEL, change_points
from dpbench.comparability import differences, differing, hardware_differences
from dpbench.errors import DpbenchError, EmptySelection, unknown
from dpbench.figures import FIGURES, Figure
from dpbench.records import Cell, Outcome, Record
from dpbench.results import Results
from dpbench.rows import Row, rows
from dpbench.selection import select
from dpbench.shift import Interval, ratio_between
from dpbench.slowdown import MIN_EFFECT
from dpbench.suite import BASELINE

ABSOLUTE: Final = "none"
"""In place of a baseline: no ratios."""


@dataclass(frozen=True, slots=True)
class Point:
    """A cell in one run."""

    file: str
    started: datetime
    """Of the run."""
    record: Record
    row: Row
    environment: Mapping[str, Any]
    figure: Interval | None
    """None where the outcome has no figure, or the baseline had none in this run."""

    @property
    def machine(self) -> str | None:
        """The id of its hardware."""
        machine = self.environment.get("machine")
        return machine.get("id") if isinstance(machine, Mapping) else None


@dataclass(frozen=True, slots=True)
class Change:
    """Something is otherwise from ``after`` on than it was until ``before``: positions in the series."""

    before: int
    after: int
    ratio: Interval | None
    """Of the figure, later by earlier; None where what became of the cell changed: its outcome or coverage."""
    was: str = ""
    now: str = ""
    differences: tuple[str, ...] = ()
    """What is recorded to differ between the two runs, for people: ``torch 2.14.1 -> 2.15.0``."""

    @property
    def size(self) -> float:
        """How large it is: the logarithm of the ratio, whatever its direction; of an outcome, infinite."""
        return abs(math.log(self.ratio.value)) if self.ratio and self.ratio.value > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Series:
    """A cell through all runs that have it, in their order; on one machine where figures are of one."""

    cell: Cell
    machine: str | None
    """None: whatever machine."""
    points: tuple[Point, ...]
    changes: tuple[Change, ...] = ()

    @property
    def figures(self) -> list[tuple[int, Interval]]:
        """Those that there are, by position."""
        return [(i, p.figure) for i, p in enumerate(self.points) if p.figure is not None]


@dataclass(frozen=True, slots=True)
class History:
    """What was made of the runs: all series, those first that changed last and most."""

    figure: Figure
    baseline: str | None
    """What figures are ratios to; None: they are not."""
    runs: tuple[Results, ...]
    series: tuple[Series, ...]
    level: float = LEVEL


def history(
    results: Sequence[Results],
    value: str = "seconds",
    relative_to: str | None = None,
    selection: str = "",
    level: float = LEVEL,
) -> History:
    """Follow ``value``, one of :data:`dpbench.figures.FIGURES`, of every cell through the runs.

    ``relative_to``: an implementation, ratios to which are taken within each run, or ``none``. Left out, seconds
    are relative to ``nonprivate`` if every file has it, because two runs share no clock. ``selection``: which
    cells, as with ``-k``; empty: all.

    A measured figure changes where :func:`dpbench.changepoints.change_points` says so, of the logarithms of the
    runs' figures, and the ratio is at least 1.03 either way; a counted one, an outcome and a coverage wherever
    they differ.

    Raises:
        DpbenchError: an unknown value, a baseline that no file has, a value that has no ratios, a file without a time.
        EmptySelection: no cell is left.
    """
    if value not in FIGURES:
        raise unknown("value", value, FIGURES)
    runs = tuple(sorted({r.path.resolve(): r for r in results}.values(), key=started))
    every = list(dict.fromkeys(record.cell for run in runs for record in run.records))
    if not every:
        raise EmptySelection(f"no records in {len(runs)} files, expected runs with at least one finished cell")
    chosen = set(select(every, selection)) if selection else set(every)
    figure, baseline = FIGURES[value], _baseline(runs, value, relative_to)
    grouped: dict[tuple[Cell, str | None], list[Point]] = {}
    for run in runs:
        for record, row in zip(run.records, rows(run, baseline or BASELINE), strict=True):
            if record.cell not in chosen:
                continue
            environment = record.environment or run.header.environment
            found = figure.of(record, row, baseline is not None) if record.outcome is Outcome.OK else None
            point = Point(str(run.path), started(run), record, row, environment, found)
            machine = point.machine if baseline is None and not figure.counted else None
            grouped.setdefault((record.cell, machine), []).append(point)
    series = [_followed(Series(*key, tuple(points)), figure, level) for key, points in grouped.items()]
    return History(figure, baseline, runs, tuple(sorted(series, key=_rank)), level)


def started(results: Results) -> datetime:
    """When a run began."""
    try:
        time = datetime.fromisoformat(results.header.started)
    except ValueError:
        raise DpbenchError(
            f"{results.path} says that it was started {results.header.started!r}, expected a time such as "
            "2030-01-02T03:04:05+00:00; leave the file out, or mend its first line"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _baseline(runs: Sequence[Results], value: str, asked: str | None) -> str | None:
    if asked == ABSOLUTE:
        return None
    has = [{r.cell.implementation for r in run.records} for run in runs]
    if asked is None:
        return BASELINE if value == "seconds" and all(BASELINE in names for names in has) else None
    if asked not in (everybody := set().union(*has)):
        raise unknown("implementation to compare with", asked, everybody)
    FIGURES[value].check_relative(value, asked)
    return asked


def _rank(series: Series) -> tuple[float, float]:
    if not series.changes:
        return (math.inf, 0)
    latest = max(series.points[c.after].started for c in series.changes)
    size = max(c.size for c in series.changes if series.points[c.after].started == latest)
    return (-latest.timestamp(), -size)


def _followed(series: Series, figure: Figure, level: float) -> Series:
    """The series with its changes."""
    became = [
        Change(i, i + 1, None, before, after)
        for i, (one, two) in enumerate(pairwise(series.points))
        for before, after in ((_became(one), _became(two)),)
        if before != after
    ]
    changes = [*became, *(_counted(series) if figure.counted else _measured(series, level))]
    points = series.points
    return replace(
        series,
        changes=tuple(
            replace(c, differences=tuple(_between(points[c.before], points[c.after])))
            for c in sorted(changes, key=lambda c: c.after)
        ),
    )


def _became(point: Point) -> str:
    """What became of a cell: its outcome, and how much was trained if that is not all."""
    coverage = point.record.coverage
    if not point.row.partial or coverage is None:
        return str(point.row.outcome)
    return f"{point.row.outcome}, {coverage.trained} of {coverage.asked} parameters trained"


def _counted(series: Series) -> list[Change]:
    return [
        Change(i, j, Interval(b.value / a.value if a.value else math.inf), str(a.value), str(b.value))
        for (i, a), (j, b) in pairwise(series.figures)
        if a.value != b.value
    ]


def _measured(series: Series, level: float) -> list[Change]:
    where, values = [i for i, _ in series.figures], [f.value for _, f in series.figures]
    places = change_points([math.log(v) for v in values], level)
    while places:
        ends = [0, *places, len(values)]
        ratios = [ratio_between(values[a:b], values[b:c]) for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)]
        changes = [Change(where[p - 1], where[p], r) for p, r in zip(places, ratios, strict=True)]
        smallest = min(changes, key=lambda c: c.size)
        if smallest.size >= math.log1p(MIN_EFFECT):
            return changes
        # The two sides are one, and the next change is one between more runs.
        del places[changes.index(smallest)]
    return []


def _between(before: Point, after: Point) -> list[str]:
    one, two = before.record, after.record
    environments = before.environment, after.environment
    found = [f"machine {d}" for d in hardware_differences(*environments)] + differences(*environments)
    settings = [environment.get("settings") or {} for environment in environments]
    found += differing(settings[0], settings[1])
    if one.source and two.source and one.source != two.source:
        found.insert(0, f"source of {one.cell.implementation} {one.source} -> {two.source}")
    if one.batch != two.batch:
        found.insert(0, f"batch {one.batch} -> {two.batch}")
    # Layers follow from model and workload, and are in some records only.
    models = [{k: v for k, v in record.facts.items() if k != "layers"} for record in (one, two)]
    return [*found, *(f"model's {d}" for d in differing(models[0], models[1]))]
