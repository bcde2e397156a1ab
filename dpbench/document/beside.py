"""Each implementation beside non-private training: speed and memory, a line for each workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpbench.document.parts import Column, Entry, Grid, Kind, Section
from dpbench.document.sources import Material
from dpbench.document.standing import leanest
from dpbench.records import Outcome, Workload
from dpbench.reporting import palette
from dpbench.reporting.numbers import WORDS, percent, ratio, significant
from dpbench.reporting.remarks import said_of
from dpbench.reporting.summary import speed_ratio
from dpbench.rows import Row
from dpbench.stats import MIN_ROUNDS

BASELINE = "nonprivate"
NOTHING_CLAIMED = {Outcome.REFUSED, Outcome.OUT_OF_MEMORY}
GB = 1e9

Key = tuple[str, Workload]
"""A source and a workload."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a table shows of every cell."""

    id: str
    caption: str
    relative: bool
    value: Callable[[Row], float | None]
    shown: Callable[[Row], str]
    best: Callable[[Material, Key], Iterable[Row]]
    """Which of one workload are set off."""
    heading: str
    """Of the baseline's own figure."""
    unit: str


def _fastest(material: Material, key: Key) -> list[Row]:
    found = material.fastest.get(key)
    return [found.row, *found.ties] if found else []


def _leanest(material: Material, key: Key) -> list[Row]:
    return leanest(material.groups.get(key, []))


def _memory(row: Row) -> float | None:
    return None if row.batch_is_max or row.memory is None else row.memory / GB


SPEED = Quantity(
    id="speed",
    caption="throughput relative to non-private training on the same workload (higher is better)",
    relative=True,
    value=lambda row: row.speed_relative,
    shown=lambda row: speed_ratio(row, BASELINE),
    best=_fastest,
    heading="examples/s",
    unit="examples/s",
)
MEMORY = Quantity(
    id="memory",
    caption="peak memory above parameters and batch, relative to non-private training (lower is better)",
    relative=True,
    value=lambda row: None if row.batch_is_max else row.memory_relative,
    shown=lambda row: ratio(row.memory_relative or 0.0),
    best=_leanest,
    heading="GB",
    unit="GB",
)
THROUGHPUT = Quantity(
    id="throughput",
    caption="throughput, examples/s, where there is no non-private figure to compare with (higher is better)",
    relative=False,
    value=lambda row: row.examples_per_s,
    shown=lambda row: significant(row.examples_per_s or 0.0),
    best=_fastest,
    heading="",
    unit="examples/s",
)
BYTES = Quantity(
    id="gigabytes",
    caption="peak memory above parameters and batch, GB, where there is no non-private figure to compare with "
    "(lower is better)",
    relative=False,
    value=_memory,
    shown=lambda row: significant(_memory(row) or 0.0),
    best=_leanest,
    heading="",
    unit="GB",
)
OF_BASELINE: dict[str, Callable[[Row], float | None]] = {"speed": lambda r: r.examples_per_s, "memory": _memory}


def section(material: Material) -> Section | None:
    """The tables; None without a cell."""
    groups = material.groups
    if not groups and not material.missing:
        return None
    made = [_grid(material, quantity, groups) for quantity in (SPEED, MEMORY, THROUGHPUT, BYTES)]
    parts = tuple(grid for grid in made if grid is not None)
    if not parts:
        return None
    return Section(
        id="beside",
        title="Beside non-private training",
        prose=(
            "Every private gradient step beside the same step without privacy, timed in turns with it on the same "
            "machine. Set off is the fastest private implementation, with those that cannot be told apart from it, and "
            "the leanest. A cell without a figure says why.",
        ),
        parts=parts,
    )


def _grid(material: Material, quantity: Quantity, groups: dict[Key, list[Row]]) -> Grid | None:
    keys = dict.fromkeys([*groups, *((source, cell.workload) for source, cell in material.missing)])
    own = {key: groups.get(key, []) for key in keys if _belongs(groups.get(key, []), quantity)}
    absent = {(source, cell.workload, cell.implementation) for source, cell in material.missing}
    if not _tells(quantity, own, absent):
        return None
    names = palette.order(
        {row.implementation for rows in own.values() for row in rows}
        | {name for source, workload, name in absent if (source, workload) in own}
    )
    if quantity.relative:
        names = [name for name in names if name != BASELINE]
    lines = []
    for (source, workload), rows in own.items():
        best = {id(row) for row in quantity.best(material, (source, workload))}
        found = {row.implementation: row for row in rows}
        line = [Entry(source)] if material.several else []
        line.append(Entry(material.label(workload)))
        if quantity.relative:
            line.append(_baseline(material, rows[0].baseline, quantity))
        for name in names:
            row = found.get(name)
            if row is not None:
                line.append(_entry(material, row, quantity, id(row) in best))
            else:
                line.append(Entry("not run", kind=Kind.MUTED) if (source, workload, name) in absent else Entry(""))
        lines.append(tuple(line))
    columns = [Column("source", numeric=False)] if material.several else []
    columns.append(Column("workload", numeric=False))
    if quantity.relative:
        columns.append(Column(BASELINE, quantity.heading, implementation=BASELINE))
    unit = "ratio" if quantity.relative else quantity.unit
    columns += [Column(name, unit, implementation=name) for name in names]
    return Grid(
        id=quantity.id,
        caption=quantity.caption[0].upper() + quantity.caption[1:],
        columns=tuple(columns),
        lines=tuple(lines),
        notes=(*_notes([row for rows in own.values() for row in rows], quantity), *material.labels.notes()),
        sources=tuple(dict.fromkeys(source for source, _ in own)),
    )


def _belongs(rows: Sequence[Row], quantity: Quantity) -> bool:
    """Ratios where there is a baseline; what it is itself, where there is none."""
    has = any(row.baseline is not None for row in rows)
    return has is quantity.relative and not (quantity in (MEMORY, BYTES) and rows and rows[0].batch_is_max)


def _tells(quantity: Quantity, own: dict[Key, list[Row]], absent: set[tuple[str, Workload, str]]) -> bool:
    """Whether a figure is in it; of speed, also whether it has to be said why there is none."""
    rows = [row for rows in own.values() for row in rows]
    if any(quantity.value(row) is not None for row in rows):
        return True
    silent = any(row.outcome is not Outcome.OK for row in rows) or any(key[:2] in own for key in absent)
    return quantity in (SPEED, THROUGHPUT) and silent


def _baseline(material: Material, row: Row | None, quantity: Quantity) -> Entry:
    value = OF_BASELINE[quantity.id](row) if row is not None else None
    if row is None or value is None:
        return Entry("-")
    # Where -k leaves it out it is still what others are held against, and no record of the report.
    return Entry(significant(value), float(f"{value:.6g}"), material.place(row))


def _entry(material: Material, row: Row, quantity: Quantity, best: bool) -> Entry:
    note = "; ".join(said_of(row))
    place = material.place(row)
    if row.outcome is not Outcome.OK:
        kind = Kind.MUTED if row.outcome in NOTHING_CLAIMED else Kind.BAD
        return Entry(WORDS[row.outcome], record=place, note=note, kind=kind)
    value = quantity.value(row)
    if value is None:
        return Entry("-", record=place, note=note)
    text = quantity.shown(row)
    if row.partial and row.coverage is not None:
        text += f" ({percent(row.coverage)} trained)"
    return Entry(text, float(f"{value:.6g}"), place, note, Kind.BEST if best else Kind.PLAIN)


def _notes(rows: Sequence[Row], quantity: Quantity) -> Iterable[str]:
    if quantity in (SPEED, THROUGHPUT):
        rounds = {row.rounds for row in rows if row.rounds}
        if quantity is SPEED and any(row.speed_relative_low is not None for row in rows):
            yield "in brackets: the 95 % interval over rounds, each a fresh process"
        if quantity is SPEED and any(1 < n < MIN_ROUNDS for n in rounds):
            yield "in square brackets: the smallest and the largest ratio of a round, of too few for an interval"
        if any(n < MIN_ROUNDS for n in rounds):
            yield "where there is no interval, the largest figure is set off, which is no finding"
        if any(row.batch_is_max for row in rows):
            yield "B=max: each at the largest physical batch that fits, its own; their examples/s are compared"
    if any(row.partial and row.outcome is Outcome.OK for row in rows):
        yield (
            "where parameters got no gradient, less was computed: such a figure is no plain comparison, and never set "
            "off"
        )
    if not quantity.relative:
        yield f"no ratio is given: {BASELINE} was not run there, or has no figure of the whole work"
