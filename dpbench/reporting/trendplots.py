"""The history of cells as a chart: a small panel for each, with a line where it changed.

A hollow marker says that not all parameters were trained there.
"""

from __future__ import annotations

import math
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from dpbench.history import History, Series
from dpbench.reporting import palette
from dpbench.reporting.panels import MAX_COLUMNS, WIDTH
from dpbench.reporting.plots import HOLLOW
from dpbench.reporting.style import style
from dpbench.reporting.trends import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHANGED = "#222222"
SCALES = {"s": (1e-3, "ms"), "bytes": (1e9, "GB"), "FLOP": (1e9, "GFLOP")}
"""What a unit is drawn in."""


def write(history: History, path: Path) -> None:
    """Draw the history into ``path``, the same file for the same history."""
    figure = draw(history)
    with style():
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw(history: History) -> Figure:
    """A panel for each series, in their order; runs without a figure are gaps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(MAX_COLUMNS, len(history.series))
    lines = math.ceil(len(history.series) / columns)
    with style():
        figure = Figure(figsize=(2.7 * columns + 0.6, 2.0 * lines + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(lines, columns)
        for i, series in enumerate(history.series):
            _panel(figure.add_subplot(grid[divmod(i, columns)]), series, history)
        figure.supylabel(_label(history), fontsize=9)
    return figure


def _label(history: History) -> str:
    if history.baseline is not None:
        return f"{history.figure.title}, relative to {history.baseline}"
    unit = SCALES.get(history.figure.unit, (1, history.figure.unit))[1]
    return ", ".join(filter(None, [history.figure.title, unit]))


def _panel(axes: Axes, series: Series, history: History) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

    scale = SCALES.get(history.figure.unit, (1.0, ""))[0] if history.baseline is None else 1.0
    look = palette.look(series.cell.implementation)
    times = [float(date2num(p.started)) for p in series.points]  # type: ignore[no-untyped-call]
    values = [math.nan if p.figure is None else p.figure.value / scale for p in series.points]
    axes.plot(times, values, color=look.colour, marker=look.marker, markersize=3, linestyle=look.line, linewidth=1)
    for time, point in zip(times, series.points, strict=True):
        if point.figure is not None and point.figure.low is not None and point.figure.high is not None:
            axes.vlines(time, point.figure.low / scale, point.figure.high / scale, color=look.colour, linewidth=0.8)
    partial = [(t, v) for t, v, p in zip(times, values, series.points, strict=True) if p.row.partial]
    if partial:
        axes.plot(*zip(*partial, strict=True), **HOLLOW, marker=look.marker, markersize=3, color=look.colour)
    for change in series.changes:
        axes.axvline((times[change.before] + times[change.after]) / 2, color=CHANGED, linewidth=0.8, linestyle=":")
    said = [words(c, history) for c in series.changes[-2:]]
    name = f"{series.cell.implementation} on {series.cell.workload.label()}"
    machine = [f"machine {series.machine}"] if series.machine else []
    axes.set_title("\n".join(line for text in (name, *machine, *said) for line in wrap(text, WIDTH)), loc="left")
    locator = AutoDateLocator(minticks=2, maxticks=4)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    known = [v for v in values if not math.isnan(v)]
    if known:
        # Noise of a few percent is to look flat.
        room = max(0.1 * max(known), max(known) - min(known)) / 2
        axes.set_ylim(min(known) - room, max(known) + room)
