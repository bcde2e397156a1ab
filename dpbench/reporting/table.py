"""A table of one figure over the axes of a sweep, as text, Markdown, LaTeX or CSV.

What has no figure stands in the table as a word (OOM, refused, wrong, timed out, failed), with its
reason in a footnote; a cell that was not run is empty. A figure for which not all parameters were
trained says so beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from dpbench.errors import DpbenchError, unknown
from dpbench.records import Outcome, Workload
from dpbench.reporting import palette
from dpbench.reporting.numbers import WORDS, percent, ratio, significant
from dpbench.reporting.remarks import said_of
from dpbench.results import Results
from dpbench.rows import Row, rows
from dpbench.selection import SHORT

AXES = ("implementation", *(f.name for f in fields(Workload)), "file")
_OF_ROW = ("implementation", "file")
TITLES = {axis: short for short, axis in SHORT.items()}


@dataclass(frozen=True, slots=True)
class Value:
    """A figure that a table can show."""

    column: str
    title: str
    unit: str
    better: str
    """``higher``, ``lower`` or nothing."""
    scale: float = 1.0
    """In the unit of the column."""
    relative: Callable[[Row], float | None] | None = None
    """The same as a ratio to the baseline, where that means something."""


def _time_ratio(row: Row) -> float | None:
    # Where each has a batch of its own, a step of one is not compared with a step of the other.
    of_one_size = not row.batch_is_max or row.workload.logical_batch is not None
    return 1 / row.speed_relative if row.speed_relative and of_one_size else None


def _speed_ratio(row: Row) -> float | None:
    return row.speed_relative


def _memory_ratio(row: Row) -> float | None:
    return row.memory_relative


VALUES = {
    "throughput": Value("examples_per_s", "throughput", "examples/s", "higher", 1, _speed_ratio),
    "tokens": Value("tokens_per_s", "throughput", "tokens/s", "higher", 1, _speed_ratio),
    "seconds": Value("seconds", "time per step", "ms", "lower", 1e-3, _time_ratio),
    "batch": Value("batch", "physical batch", "examples", "higher"),
    "memory": Value("memory", "peak memory above parameters and batch", "GB", "lower", 1e9, _memory_ratio),
    "process": Value("process_peak", "peak memory of the process", "GB", "lower", 1e9),
    "error": Value("parity_error", "relative error of the gradient", "", "lower"),
    "coverage": Value("coverage", "parameters trained / asked to be trained", "", "higher"),
    "ghost": Value("ghost", "share of parameters with ghost norms", "", "higher"),
    "generic": Value("generic", "share of parameters by the generic rule, which is slow", "", "lower"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown, by row and column."""

    caption: str
    keys: tuple[str, ...]
    """Titles of the columns that name a row."""
    columns: tuple[str, ...]
    unit: str
    lines: tuple[tuple[tuple[str, ...], tuple[str | float, ...]], ...]
    """Per row its names and its cells: a number, or a word."""
    marks: dict[tuple[int, int], int]
    """Number of the footnote of a cell, by row and column, counted from 1."""
    footnotes: tuple[str, ...]
    relative: bool = False

    def shown(self, value: str | float) -> str:
        """A cell as text."""
        if isinstance(value, str):
            return value
        return ratio(value) if self.relative else significant(value)


def build(
    results: Sequence[Results],
    by_row: Sequence[str] | None = None,
    by_column: Sequence[str] = ("implementation",),
    value: str = "throughput",
    relative_to: str | None = None,
) -> Table:
    """Arrange ``value`` of all results by the axes named.

    Without ``by_row`` the rows are the model and every axis that varies.

    Raises:
        DpbenchError: an unknown axis or value, an implementation to compare with that is not there,
            or several records in one cell of the table, with the axes that tell them apart.
    """
    every = [row for r in results for row in rows(r, relative_to or "nonprivate")]
    for axis in (*(by_row or ()), *by_column):
        if axis not in AXES:
            raise unknown("axis", axis, AXES)
    if value not in VALUES:
        raise unknown("value", value, VALUES)
    implementations = {row.implementation for row in every}
    if relative_to is not None and relative_to not in implementations:
        raise unknown("implementation to compare with", relative_to, implementations)
    what = VALUES[value]
    if relative_to is not None and what.relative is None:
        able = ", ".join(k for k, v in VALUES.items() if v.relative)
        raise DpbenchError(f"{value} cannot be given relative to {relative_to}, expected one of {able}")
    varying = _varying(every)
    if by_row is None:
        by_row = [a for a in AXES if a not in by_column and (a == "model" or a in varying)]
    by_row = [a for a in dict.fromkeys(by_row) if a not in by_column]
    found = _place(every, by_row, by_column, varying)
    lines, marks, footnotes = _fill(found, by_row, by_column, what, relative_to is not None)
    direction = f" ({what.better} is better)" if what.better else ""
    unit = f"ratio to {relative_to}" if relative_to else what.unit
    fixed = [
        f"{TITLES.get(a, a)} {_at(every[0], a)}"
        for a in ("model", "batch", "seq_len", "image_size", "precision", "device")
        if every and a not in varying and a not in (*by_row, *by_column) and _at(every[0], a) is not None
    ]
    caption = ", ".join([what.title] + ([unit] if unit else [])) + direction
    return Table(
        caption="; ".join([caption, *([", ".join(fixed)] if fixed else [])]),
        keys=tuple(TITLES.get(a, a) for a in by_row),
        columns=tuple(_name(c, by_column) for c in _ordered((column for _, column in found), by_column)),
        unit=unit,
        lines=lines,
        marks=marks,
        footnotes=footnotes,
        relative=relative_to is not None,
    )


Key = tuple[Any, ...]


def _at(row: Row, axis: str) -> Any:
    return getattr(row if axis in _OF_ROW else row.workload, axis)


def _varying(every: Sequence[Row]) -> list[str]:
    """The axes with several values, of what may be many rows of few workloads."""
    workloads = {row.workload for row in every}
    values = {axis: {getattr(w, axis) for w in workloads} for axis in AXES if axis not in _OF_ROW}
    values |= {axis: {getattr(row, axis) for row in every} for axis in _OF_ROW}
    return [axis for axis in AXES if len(values[axis]) > 1]


def _keys(every: Sequence[Row], axes: Sequence[str]) -> list[Key]:
    paths = [axis if axis in _OF_ROW else f"workload.{axis}" for axis in axes]
    # Two more than are needed: of a single one, attrgetter gives what it finds without a tuple around it.
    get = attrgetter(*paths, *_OF_ROW)
    return [get(row)[: len(paths)] for row in every]


def _place(
    every: Sequence[Row], by_row: Sequence[str], by_column: Sequence[str], varying: Sequence[str]
) -> dict[tuple[Key, Key], Row]:
    found: dict[tuple[Key, Key], Row] = {}
    for line, column, row in zip(_keys(every, by_row), _keys(every, by_column), every, strict=True):
        place = line, column
        if place in found:
            rest = [a for a in varying if a not in (*by_row, *by_column)]
            raise DpbenchError(
                "several records fall into one cell of the table, expected one; what tells them apart is "
                f"{', '.join(rest)}: add it to --rows or --cols"
            )
        found[place] = row
    return found


def _ordered(found: Iterable[Key], axes: Sequence[str]) -> list[Key]:
    """The keys that occur: numbers by size, implementations as in every chart, other words as they came."""
    keys = list(dict.fromkeys(found))
    ranks = [_ranks(dict.fromkeys(values), axis) for axis, values in zip(axes, zip(*keys, strict=True), strict=False)]
    return sorted(keys, key=lambda key: [rank[value] for rank, value in zip(ranks, key, strict=True)])


def _ranks(values: Iterable[Any], axis: str) -> dict[Any, float]:
    if axis == "implementation":
        return {name: place for place, name in enumerate(palette.order(set(values)))}

    def rank(place: int, value: Any) -> float:
        return -1 if value is None else value if isinstance(value, int | float) else place

    return {value: rank(place, value) for place, value in enumerate(values)}


def _name(key: Key, axes: Sequence[str]) -> str:
    """The title of a column; a bare number says what it is."""
    words = [
        f"{TITLES.get(a, a)}={'default' if v is None else v}" if not isinstance(v, str) else v
        for a, v in zip(axes, key, strict=True)
    ]
    return " ".join(words) or "all"


def _fill(
    found: dict[tuple[Key, Key], Row],
    by_row: Sequence[str],
    by_column: Sequence[str],
    what: Value,
    relative: bool,
) -> tuple[tuple[tuple[tuple[str, ...], tuple[str | float, ...]], ...], dict[tuple[int, int], int], tuple[str, ...]]:
    lines: list[tuple[tuple[str, ...], tuple[str | float, ...]]] = []
    marks: dict[tuple[int, int], int] = {}
    footnotes: dict[str, list[str]] = {}
    columns = _ordered((column for _, column in found), by_column)
    for i, key in enumerate(_ordered((line for line, _ in found), by_row)):
        cells: list[str | float] = []
        for j, column in enumerate(columns):
            row = found.get((key, column))
            cells.append("" if row is None else _cell(row, what, relative))
            if row is not None and (note := "; ".join(said_of(row))):
                names = footnotes.setdefault(note, [])
                if row.implementation not in names:
                    names.append(row.implementation)
                marks[i, j] = list(footnotes).index(note) + 1
        lines.append((tuple("-" if k is None else str(k) for k in key), tuple(cells)))
    notes = tuple(f"{', '.join(names)}: {reason}" for reason, names in footnotes.items())
    return tuple(lines), marks, notes


def _cell(row: Row, what: Value, relative: bool) -> str | float:
    if row.outcome is not Outcome.OK:
        return WORDS[row.outcome]
    value = what.relative(row) if relative and what.relative else getattr(row, what.column)
    if value is None:
        return "-"
    number = float(value) / (1 if relative else what.scale)
    if row.partial and row.coverage is not None and what.column != "coverage":
        # No number: nobody is to calculate with it as with those of the whole work.
        return f"{ratio(number) if relative else significant(number)} ({percent(row.coverage)} trained)"
    return number
