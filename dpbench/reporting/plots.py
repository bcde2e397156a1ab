"""Charts of a sweep: throughput and peak memory against B, T or image size, as PNG and SVG.

One small panel for each model and setting, one line for each implementation, looking the same in
every chart. Where an implementation ran out of memory a cross stands at that size: at zero
throughput, or at the top of the memory axis. A hollow marker says that not all parameters were
trained there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.records import Outcome
from dpbench.reporting import palette
from dpbench.reporting.panels import Panel, panels_of, places_of, setting_of
from dpbench.reporting.style import style
from dpbench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZES = {
    "batch": "physical batch size B, examples",
    "seq_len": "sequence length T, tokens",
    "image_size": "image height and width, pixels",
}
LOGARITHMIC_FROM = 30
"""Largest over smallest figure of a panel above which the axis is logarithmic."""
STACK = 6
"""Points between crosses that stand above each other."""
HOLLOW: dict[str, Any] = {"linestyle": "", "markerfacecolor": "white", "markeredgewidth": 1.2}
"""The marker of a figure for which not all parameters were trained."""
PANEL_HEIGHT = 110
"""Points, roughly: what crosses take away from."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a chart shows upwards."""

    name: str
    column: str
    label: str
    scale: float


QUANTITIES = (
    Quantity("throughput", "examples_per_s", "throughput, examples/s", 1.0),
    Quantity("memory", "memory", "peak memory, GB", 1e9),
)


def draw_all(rows: Sequence[Row], beside: Path) -> list[Path]:
    """Draw every chart that the sweep has data for, and say which files were written.

    The files lie beside the results and are called after them, for example
    ``quickstart-20300102T030405Z-throughput-vs-batch.png``. An axis with fewer than two values in
    every panel gets no chart.
    """
    written = []
    for size in SIZES:
        panels = panels_of(rows, size)
        for quantity in QUANTITIES if panels else ():
            if all(getattr(r, quantity.column) is None for panel in panels for r in panel.rows):
                continue
            figure = draw(panels, size, quantity)
            for suffix in ("png", "svg"):
                name = f"{beside.stem}-{quantity.name}-vs-{size.replace('_', '-')}.{suffix}"
                path = beside.with_name(name)
                try:
                    with style():
                        figure.savefig(path, dpi=200, metadata={"Date": None} if suffix == "svg" else None)
                except OSError:
                    # The disk is full: half a chart is none.
                    path.unlink(missing_ok=True)
                    raise
                written.append(path)
    return written


def draw(panels: Sequence[Panel], size: str, quantity: Quantity) -> Figure:
    """One chart: ``quantity`` against ``size``, a panel for each entry of ``panels``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = places_of(panels)
    lines, columns = (1 + max(place[i] for place in places) for i in (0, 1))
    names = palette.order({r.implementation for panel in panels for r in panel.rows})
    with style():
        height = max(2.2 * lines + 0.45, 0.2 * len(names) + 0.5)
        figure = Figure(figsize=(max(2.7 * columns, 3.2) + 1.9, height), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(lines, columns)
        logarithmic = any(_spread(panel, quantity) > LOGARITHMIC_FROM for panel in panels)
        died = [
            _panel(figure.add_subplot(grid[place]), panel, names, size, quantity, logarithmic)
            for place, panel in zip(places, panels, strict=True)
        ]
        figure.suptitle(setting_of(panels), x=0.005, ha="left", fontsize=8, color="#666666")
        figure.supxlabel(SIZES[size], fontsize=9)
        figure.supylabel(quantity.label, fontsize=9)
        partial = any(r.partial and getattr(r, quantity.column) is not None for panel in panels for r in panel.rows)
        _legend(figure, names, any(died), partial)
    return figure


def _figures(panel: Panel, quantity: Quantity) -> list[float]:
    return [v / quantity.scale for r in panel.rows if (v := getattr(r, quantity.column))]


def _spread(panel: Panel, quantity: Quantity) -> float:
    figures = _figures(panel, quantity)
    return max(figures) / min(figures) if figures else 1.0


def _panel(axes: Axes, panel: Panel, names: Sequence[str], size: str, quantity: Quantity, logarithmic: bool) -> bool:
    """Draw one panel; whether a cross for memory that ran out is in it."""
    titled(axes, panel.title)
    values = sorted({v for r in panel.rows if (v := getattr(r.workload, size)) is not None})
    _size_axis(axes, values)
    died: dict[Any, list[str]] = {}
    for name in reversed(names):
        own = sorted(
            (r for r in panel.rows if r.implementation == name),
            key=lambda r: getattr(r.workload, size) or 0,
        )
        look = palette.look(name)
        points = [(getattr(r.workload, size), getattr(r, quantity.column)) for r in own]
        # A size without a figure interrupts the line: nothing is claimed there.
        xs = [x for x, _ in points]
        ys = [math.nan if y is None else y / quantity.scale for _, y in points]
        axes.plot(xs, ys, **_line(look))
        hollow = [(x, y) for x, y, row in zip(xs, ys, own, strict=True) if row.partial and not math.isnan(y)]
        if hollow:
            axes.plot(*zip(*hollow, strict=True), **_line(look) | HOLLOW | {"markeredgecolor": look.colour})
        for row in own:
            if row.outcome is Outcome.OUT_OF_MEMORY:
                died.setdefault(getattr(row.workload, size), []).append(name)
    at_top = quantity.name == "memory"
    room = 0.05 + (STACK * max(map(len, died.values()), default=0)) / PANEL_HEIGHT
    above, below = (room, 0.05) if at_top else (0.05, room)
    _figure_axis(axes, _figures(panel, quantity), above, below, logarithmic)
    _crosses(axes, died, names, at_top)
    return bool(died)


def titled(axes: Axes, title: str) -> None:
    """Set the title, and tell matplotlib that neither it nor a label of an axis is moved out of the way of ticks.

    It would measure every tick anew for that, several times, which takes half as long as drawing does.
    """
    axes.set_title(title, loc="left", color="#222222", y=1.0)
    axes.xaxis.set_label_coords(0.5, 0)
    axes.yaxis.set_label_coords(0, 0.5)


def _size_axis(axes: Axes, values: Sequence[int]) -> None:
    """Logarithmic, with ticks where something was measured and nowhere else."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    margin = (values[-1] / values[0]) ** 0.08
    axes.set_xlim(values[0] / margin, values[-1] * margin)


def _figure_axis(axes: Axes, figures: Sequence[float], above: float, below: float, logarithmic: bool) -> None:
    """From zero, or logarithmic, with these fractions of the height left free above and below the figures.

    An axis that starts at zero has no room below.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = (min(figures), max(figures)) if figures else (0.5, 1.0)
    if logarithmic:
        axes.set_yscale("log")
        decades = math.log10(high / low) / (1 - above - below)
        axes.set_ylim(low / 10 ** (decades * below), high * 10 ** (decades * above))
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if decades < 3 else (1.0,)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, high / (1 - above))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}".replace(",", "\N{THIN SPACE}")))


def _crosses(axes: Axes, died: dict[Any, list[str]], names: Sequence[str], at_top: bool) -> None:
    """A cross in its colour for each implementation that ran out of memory, stacked where several did."""
    for x, who in died.items():
        for i, name in enumerate(n for n in names if n in who):
            axes.annotate(
                "\N{MULTIPLICATION SIGN}",
                (x, 1 if at_top else 0),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, -STACK * i if at_top else STACK * i + 5),
                textcoords="offset points",
                ha="center",
                va="center",
                color=palette.look(name).colour,
                fontsize=11,
                fontweight="bold",
                annotation_clip=False,
            )


def _line(look: palette.Look) -> dict[str, Any]:
    return {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": look.line,
        "linewidth": 1.4,
        "markersize": 7.5 if look.marker == "*" else 6 if look.marker in "PX" else 5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "clip_on": False,
    }


def _legend(figure: Figure, names: Sequence[str], with_cross: bool, with_hollow: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **_line(palette.look(name))) for name in names]
    if with_cross:
        handles.append(Line2D([], [], linestyle="", marker="x", color="#222222", markersize=5, label="out of memory"))
    if with_hollow:
        look = {**HOLLOW, "marker": "o", "markeredgecolor": "#222222", "markersize": 5}
        handles.append(Line2D([], [], label="not all parameters trained", **look))
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.6, labelspacing=0.6)
