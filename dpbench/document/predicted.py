"""What was counted in a trace beside what was measured: how far each cell lies from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.parts import Chart, Column, Entry, Grid, Section
from dpbench.document.sources import Material
from dpbench.reporting import palette
from dpbench.reporting.numbers import duration, ratio, size
from dpbench.reporting.plots import titled
from dpbench.reporting.style import style
from dpbench.rows import Row
from dpbench.stats import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 200
"""Of the table of cells: those that lie farthest off; every record has its figures."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A prediction and what was measured instead."""

    predicted: float
    measured: float

    @property
    def residual(self) -> float:
        """Measured over predicted: 1 where they agree."""
        return self.measured / self.predicted


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is predicted."""

    id: str
    title: str
    of: Callable[[Row], Pair | None]
    shown: Callable[[float], str]


def _pair(predicted: float | None, measured: float | None) -> Pair | None:
    return Pair(predicted, measured) if predicted and measured else None


def _time(row: Row) -> Pair | None:
    """FLOPs and time, both relative to the baseline's, at one size of a step."""
    flops = row.baseline.flops if row.baseline else None
    if row.batch_is_max or row.baseline is None or row.implementation == row.baseline.implementation:
        return None
    return _pair(
        row.flops / flops if row.flops and flops else None, 1 / row.speed_relative if row.speed_relative else None
    )


def _peak(row: Row) -> Pair | None:
    return _pair(row.traced_peak, row.memory)


def _seconds(row: Row) -> Pair | None:
    roofline = getattr(row.record.traced, "roofline", None)
    return _pair(roofline.expected if roofline else None, row.seconds)


QUANTITIES = (
    Quantity("time-over-flops", "time ratio / FLOPs ratio", _time, ratio),
    Quantity("peak", "peak memory / traced peak", _peak, size),
    Quantity("seconds", "seconds / roofline", _seconds, duration),
)


def section(material: Material) -> Section | None:
    """For each source a chart and two tables; None where nothing was both counted and measured."""
    parts: list[Chart | Grid] = []
    for source, rows in material.by_source.items():
        pairs = {q: [(row, pair) for row in rows if (pair := q.of(row)) is not None] for q in QUANTITIES}
        told = {q: own for q, own in pairs.items() if own}
        if told:
            mark = f"-{source.lower()}" if material.several else ""
            of = f", source {source}" if material.several else ""
            parts += [_chart(material, source, told, mark, of), _by_name(told, source, mark, of)]
            parts.append(_by_cell(material, told, source, mark, of))
    if not parts:
        return None
    prose = (
        "FLOPs, peak memory and, where the machine's card is known, a roofline time were counted in a trace of the "
        "same code. Above 1 more was measured than counted: of the time ratio, because work is not all arithmetic; of "
        "memory, for what is alive inside of an operator.",
    )
    return Section("predicted", "Predicted against measured", prose, tuple(parts))


Told = dict[Quantity, list[tuple[Row, Pair]]]


def _chart(material: Material, source: str, told: Told, mark: str, of: str) -> Chart:
    rows = {id(row): row for own in told.values() for row, _ in own}
    ranges = [f"{q.title} from {ratio(min(r))} to {ratio(max(r))}" for q, r in _residuals(told).items()]
    return Chart(
        id=f"residuals{mark}",
        caption=f"Measured over predicted, a dot for each cell{of}",
        draw=partial(draw, told),
        alt="; ".join(ranges),
        sources=(source,),
        records=material.places_of(rows.values()),
    )


def _residuals(told: Told) -> dict[Quantity, list[float]]:
    return {q: [pair.residual for _, pair in own] for q, own in told.items()}


def _by_name(told: Told, source: str, mark: str, of: str) -> Grid:
    """Of each implementation how many cells, the median, the smallest and the largest."""
    names = palette.order({row.implementation for own in told.values() for row, _ in own})
    lines = []
    for name in names:
        line = [Entry(name)]
        for own in told.values():
            found = [pair.residual for row, pair in own if row.implementation == name]
            line.append(_spread(found) if found else Entry(""))
        lines.append(tuple(line))
    return Grid(
        id=f"residuals-by-implementation{mark}",
        caption=f"Measured over predicted{of}: the median over cells, in brackets the smallest and the largest",
        columns=(Column("implementation", numeric=False), *(Column(q.title) for q in told)),
        lines=tuple(lines),
        sources=(source,),
    )


def _spread(residuals: Sequence[float]) -> Entry:
    middle = median(residuals)
    if len(residuals) == 1:
        return Entry(ratio(middle), middle)
    cells = f"{len(residuals)} cells"
    return Entry(f"{ratio(middle)} [{ratio(min(residuals))}-{ratio(max(residuals))}], {cells}", middle)


def _by_cell(material: Material, told: Told, source: str, mark: str, of: str) -> Grid:
    by_row: dict[int, tuple[Row, dict[str, Pair]]] = {}
    for quantity, own in told.items():
        for row, pair in own:
            by_row.setdefault(id(row), (row, {}))[1][quantity.id] = pair

    def off(found: tuple[Row, dict[str, Pair]]) -> float:
        return -max(max(p.residual, 1 / p.residual) for p in found[1].values())

    every = sorted(by_row.values(), key=off)
    lines = []
    for row, pairs in every[:MOST_LINES]:
        line = [Entry(row.implementation, record=material.place(row)), Entry(material.label(row.workload))]
        for quantity in told:
            known = pairs.get(quantity.id)
            line += _entries(known, quantity, material.place(row)) if known else [Entry("")] * 3
        lines.append(tuple(line))
    columns = [Column("implementation", numeric=False), Column("workload", numeric=False)]
    for quantity in told:
        columns += [Column("predicted"), Column("measured"), Column(quantity.title)]
    left = len(every) - len(lines)
    notes = (f"{left} of {len(every)} cells, which lie nearer, are left out",) if left > 0 else ()
    return Grid(
        id=f"residuals-by-cell{mark}",
        caption=f"Predicted and measured of every cell{of}, those that lie farthest off first",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes,
        sources=(source,),
    )


def _entries(pair: Pair, quantity: Quantity, place: int | None) -> list[Entry]:
    return [
        Entry(quantity.shown(pair.predicted), pair.predicted, place),
        Entry(quantity.shown(pair.measured), pair.measured, place),
        Entry(ratio(pair.residual), pair.residual, place),
    ]


def draw(told: Told) -> Figure:
    """A panel for each quantity, a line of dots for each implementation; at 1 both agree."""
    names = palette.order({row.implementation for own in told.values() for row, _ in own})
    with style():
        figure, every = drawing.panels(len(told), 3.0, 0.24 * len(names) + 0.8, beside=1.3)
        for i, (axes, (quantity, own)) in enumerate(zip(every, told.items(), strict=True)):
            _panel(axes, quantity, own, names, named=i == 0)
        figure.supxlabel("measured / predicted", fontsize=9)
    return figure


def _panel(axes: Axes, quantity: Quantity, own: Sequence[tuple[Row, Pair]], names: Sequence[str], named: bool) -> None:
    from dpbench.document.ticks import logarithmic

    titled(axes, quantity.title)
    axes.grid(axis="x")
    axes.axvline(1, color=drawing.FAINT, linewidth=0.9, zorder=1)
    for y, name in enumerate(names):
        xs = [pair.residual for row, pair in own if row.implementation == name]
        if xs:
            # Those of one implementation may lie on each other: seen through, many are darker.
            axes.plot(xs, [y] * len(xs), **drawing.marker(name) | {"alpha": 0.6, "markersize": 5}, zorder=2)
    axes.set_yticks(range(len(names)), names if named else [""] * len(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    logarithmic(axes, "x", [1.0, *(pair.residual for _, pair in own)])
