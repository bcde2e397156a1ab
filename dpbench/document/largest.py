"""The largest batch that fits, for each implementation its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.parts import Chart, Column, Entry, Grid, Kind, Section
from dpbench.document.sources import Material
from dpbench.records import Outcome, Workload
from dpbench.reporting import palette
from dpbench.reporting.numbers import WORDS, ratio
from dpbench.reporting.plots import titled
from dpbench.reporting.remarks import said_of
from dpbench.reporting.style import style
from dpbench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CHARTS = 4
WIDTH = 34
"""Characters of a title that fit over a panel."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The rows of one workload, whose batch is the largest."""

    title: str
    rows: tuple[Row, ...]


def fits(row: Row) -> int | None:
    """The batch that it ran at, right and to the end; a record that is not ok claims none."""
    return row.batch if row.outcome is Outcome.OK else None


def section(material: Material) -> Section | None:
    """A chart and a table; None where no batch is ``max``."""
    found = {key: rows for key, rows in material.groups.items() if rows[0].batch_is_max}
    if not found:
        return None
    panels = [Panel(material.named(*key), tuple(rows)) for key, rows in found.items()]
    drawn = [panel for panel in panels if any(fits(row) is not None for row in panel.rows)]
    room = drawing.MOST_PANELS * MOST_CHARTS
    prose = [
        "The physical batch that each found room for, on the device that it was measured on: found in a trace, then "
        "made smaller until the step ran."
    ]
    if len(drawn) > room:
        prose.append(f"{len(drawn) - room} of {len(drawn)} panels are left out; -k narrows a report down.")
    shown = drawn[:room]
    parts = [shown[i : i + drawing.MOST_PANELS] for i in range(0, len(shown), drawing.MOST_PANELS)]
    charts = [_chart(material, part, i if len(parts) > 1 else 0) for i, part in enumerate(parts, start=1)]
    return Section("largest", "The largest batch", tuple(prose), (*charts, _grid(material, found)))


def _chart(material: Material, panels: Sequence[Panel], number: int) -> Chart:
    rows = [row for panel in panels for row in panel.rows if fits(row) is not None]
    best = max(rows, key=lambda row: fits(row) or 0)
    return Chart(
        id=f"largest-batch-{number}" if number else "largest-batch",
        caption="Largest physical batch that fits, examples",
        draw=partial(draw, tuple(panels)),
        alt=f"Bars, the longest of {best.implementation} at {fits(best)} examples; every figure is in the table below",
        sources=tuple(dict.fromkeys(row.file for row in rows)),
        records=material.places_of(rows),
    )


def _grid(material: Material, found: Mapping[tuple[str, Workload], list[Row]]) -> Grid:
    names = palette.order({row.implementation for rows in found.values() for row in rows})
    lines = []
    for (source, _), rows in found.items():
        own = {row.implementation: row for row in rows}
        most = max((fits(row) or 0 for row in rows if row.implementation != "nonprivate"), default=0)
        line = [Entry(source)] if material.several else []
        line.append(Entry(material.label(rows[0].workload)))
        line += [_entry(material, own[name], most) if name in own else Entry("") for name in names]
        lines.append(tuple(line))
    return Grid(
        id="largest",
        caption="Largest physical batch that fits, examples; in brackets relative to non-private training",
        columns=(
            *([Column("source", numeric=False)] if material.several else []),
            Column("workload", numeric=False),
            *(Column(name, "examples", implementation=name) for name in names),
        ),
        lines=tuple(lines),
        notes=tuple(material.labels.notes()),
        sources=tuple(dict.fromkeys(source for source, _ in found)),
    )


def _entry(material: Material, row: Row, most: int) -> Entry:
    place, note, batch = material.place(row), "; ".join(said_of(row)), fits(row)
    if row.outcome is not Outcome.OK:
        muted = row.outcome in (Outcome.REFUSED, Outcome.OUT_OF_MEMORY)
        return Entry(WORDS[row.outcome], record=place, note=note, kind=Kind.MUTED if muted else Kind.BAD)
    if batch is None:
        return Entry("-", record=place, note=note)
    base = fits(row.baseline) if row.baseline is not None else None
    text = f"{batch} ({ratio(batch / base)})" if base and row.implementation != "nonprivate" else str(batch)
    best = batch == most and row.implementation != "nonprivate" and not row.partial
    return Entry(text, batch, place, note, Kind.BEST if best else Kind.PLAIN)


def draw(panels: Sequence[Panel]) -> Figure:
    """Bars from the top down, in the order of every legend; a word where there is no batch."""
    names = palette.order({row.implementation for panel in panels for row in panel.rows})
    with style():
        figure, every = drawing.panels(len(panels), 3.6, 0.24 * len(names) + 0.9, beside=0.4)
        for axes, panel in zip(every, panels, strict=True):
            _panel(axes, panel)
        figure.supxlabel("largest physical batch, examples", fontsize=9)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    own = {row.implementation: row for row in panel.rows}
    names = palette.order(set(own))
    most = max(fits(row) or 0 for row in panel.rows)
    titled(axes, "\n".join(wrap(panel.title, WIDTH)))
    for y, name in enumerate(names):
        batch, colour = fits(own[name]), palette.look(name).colour
        if batch is not None:
            axes.barh(y, batch, height=0.7, edgecolor=colour, facecolor="white" if own[name].partial else colour)
        axes.annotate(
            str(batch) if batch is not None else WORDS[own[name].outcome],
            (batch or 0, y),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=drawing.INK if batch is not None else drawing.FAINT,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.18 * most)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x")
