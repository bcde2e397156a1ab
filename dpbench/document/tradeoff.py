"""Time against memory: which implementations no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.parts import Chart, Section
from dpbench.document.sources import Material
from dpbench.document.standing import comparable
from dpbench.reporting import palette
from dpbench.reporting.plots import titled
from dpbench.reporting.style import style
from dpbench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 34
CHARACTER, LINE = 4.1, 9.0
"""Points that a letter of a label takes across, and a label upwards."""
PANEL = (2.9, 2.5)
"""Inches."""
ROOM = (175.0, 130.0)
"""Points inside of a panel, roughly."""


@dataclass(frozen=True, slots=True)
class Point:
    """One implementation on one workload: memory to the right, time upwards, the less the better of both."""

    row: Row
    memory: float
    time: float
    low: float | None = None
    high: float | None = None
    """Of the time."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The points of one workload."""

    title: str
    relative: bool
    points: tuple[Point, ...]


def section(material: Material) -> Section | None:
    """Charts of the workloads with two private implementations at least, ratios and absolute figures apart."""
    panels = [
        panel
        for (source, workload), rows in material.groups.items()
        if (panel := _points(material.named(source, workload), rows)) is not None
    ]
    if not panels:
        return None
    shown = panels[: drawing.MOST_PANELS]
    charts = [
        _chart(material, own, which) for which in (True, False) if (own := [p for p in shown if p.relative is which])
    ]
    prose = [
        "To the left is leaner, below is faster. The line joins the private implementations that no other private one "
        "beats in both, by the figures as they are; upright strokes are 95 % intervals. What trained less than "
        "everything has a hollow marker and is not on the line."
    ]
    if len(panels) > len(shown):
        prose.append(
            f"Drawn are the first {len(shown)} of {len(panels)} workloads; -k narrows a report down to what is asked."
        )
    return Section("tradeoff", "Time against memory", tuple(prose), tuple(charts))


def front(points: Sequence[Point]) -> list[Point]:
    """The Pareto front: those that no other private one equals in both and beats in one, from the leanest on."""
    allowed = {id(row) for row in comparable([p.row for p in points])}
    best: list[Point] = []
    for point in sorted((p for p in points if id(p.row) in allowed), key=lambda p: (p.memory, p.time)):
        if not best or point.time < best[-1].time:
            best.append(point)
    return best


def _points(title: str, rows: Sequence[Row]) -> Panel | None:
    if rows[0].batch_is_max:
        return None  # each fills the memory, and the time is of steps of different sizes
    relative = rows[0].baseline is not None
    points = []
    for row in rows:
        memory, time = (row.memory_relative, row.speed_relative) if relative else (row.memory, row.seconds)
        if not memory or not time:
            continue
        if relative:
            low, high = row.speed_relative_low, row.speed_relative_high
            ends = (1 / high, 1 / low) if low and high else (None, None)
            points.append(Point(row, memory, 1 / time, *ends))
        else:
            points.append(Point(row, memory / 1e9, time * 1e3, *_milliseconds(row)))
    private = comparable([p.row for p in points])
    return Panel(title, relative, tuple(points)) if len(private) > 1 else None


def _milliseconds(row: Row) -> tuple[float, float] | tuple[None, None]:
    low, high = row.seconds_low, row.seconds_high
    return (low * 1e3, high * 1e3) if low is not None and high is not None else (None, None)


def _chart(material: Material, panels: Sequence[Panel], relative: bool) -> Chart:
    rows = [point.row for panel in panels for point in panel.points]
    fronts = [f"{panel.title}: {', '.join(p.row.implementation for p in front(panel.points))}" for panel in panels]
    what = "relative to non-private training" if relative else "ms and GB"
    return Chart(
        id="time-against-memory" if relative else "milliseconds-against-gigabytes",
        caption=f"Time of a step against its peak memory, {what}",
        draw=partial(draw, tuple(panels)),
        alt=f"Which no other private one beats in both: {'; '.join(fronts)}",
        sources=tuple(dict.fromkeys(row.file for row in rows)),
        records=material.places_of(rows),
    )


def draw(panels: Sequence[Panel]) -> Figure:
    """One panel for each workload."""
    from matplotlib.lines import Line2D

    rows = [point.row for panel in panels for point in panel.points]
    relative = panels[0].relative
    with style():
        figure, every = drawing.panels(len(panels), *PANEL)
        for axes, panel in zip(every, panels, strict=True):
            _panel(axes, panel)
        figure.supxlabel("peak memory, relative to non-private" if relative else "peak memory, GB", fontsize=9)
        figure.supylabel("time of a step, relative to non-private" if relative else "time of a step, ms", fontsize=9)
        names = palette.order({row.implementation for row in rows})
        line = Line2D([], [], color=drawing.FAINT, linewidth=0.9, label="beaten by none in both")
        drawing.legend(figure, names, [line], any(row.partial for row in rows))
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    from dpbench.document.ticks import logarithmic

    titled(axes, "\n".join(wrap(panel.title, WIDTH)))
    axes.grid(axis="x")
    best = front(panel.points)
    xs, ys = [p.memory for p in best], [p.time for p in best]
    axes.plot(xs, ys, color=drawing.FAINT, linewidth=0.9, zorder=1, drawstyle="steps-post")
    for point in panel.points:
        if point.low is not None and point.high is not None:
            colour = palette.look(point.row.implementation).colour
            axes.vlines(point.memory, point.low, point.high, color=colour, linewidth=1, zorder=2)
        axes.plot(point.memory, point.time, **drawing.marker(point.row.implementation, point.row.partial), zorder=3)
    logarithmic(axes, "x", [p.memory for p in panel.points], 0.12)
    logarithmic(axes, "y", [p.time for p in panel.points], 0.12)
    _labels(axes, panel.points, best)


def _labels(axes: Axes, points: Sequence[Point], best: Sequence[Point]) -> None:
    """The names of the front beside its points, where they cover no point and no other name."""
    places = {id(p): _place(axes, p) for p in points}
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places.values()]
    corners = [places[id(p)] for p in best]
    for (x, y), (right, below) in pairwise(corners):
        # The line that joins them: across, then down.
        taken += [(x, y - 2, right, y + 2), (right - 2, below, right + 2, y)]
    for point in best:
        (x, y), width = places[id(point)], CHARACTER * len(point.row.implementation)
        for left, below in ((6, -3), (-6 - width, -3), (-width / 2, 6), (-width / 2, -14)):
            box = (x + left, y + below, x + left + width, y + below + LINE)
            inside = box[0] >= 0 and box[2] <= ROOM[0] and box[1] >= 0 and box[3] <= ROOM[1]
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                axes.annotate(
                    point.row.implementation,
                    (point.memory, point.time),
                    xytext=(left, below + 1),
                    textcoords="offset points",
                    fontsize=7,
                    color=palette.look(point.row.implementation).colour,
                )
                break


def _place(axes: Axes, point: Point) -> tuple[float, float]:
    """In points from the lower left corner of the panel."""
    x, y = axes.transAxes.inverted().transform(axes.transData.transform((point.memory, point.time)))
    return float(x) * ROOM[0], float(y) * ROOM[1]


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
