"""Charts of a sweep: throughput and peak memory against B, T or image size, as PNG and SVG.

One small panel for each model and setting, one line for each implementation, looking the same in
every chart. Where an implementation ran out of memory a cross stands at that size: at zero
throughput, or at the top of the memory axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench import selection
from dpbench.records import Outcome, Workload
from dpbench.reporting import palette
from dpbench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHORT = {axis: short for short, axis in selection.SHORT.items()}
SIZES = {
    "batch": "physical batch size B, examples",
    "seq_len": "sequence length T, tokens",
    "image_size": "image height and width, pixels",
}
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpbench",
}
MAX_COLUMNS = 4


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

@dataclass(frozen=True, slots=True)
class Panel:
    """What one small chart shows: rows that differ in the size and the implementation only."""

    title: str
    rows: tuple[Row, ...]

    @property
    def model(self) -> str:
        """The model, which all rows have in common."""
        return self.rows[0].workload.model


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
                figure.savefig(path, dpi=200, metadata={"Date": None} if suffix == "svg" else None)
                written.append(path)
    return written


def draw(panels: Sequence[Panel], size: str, quantity: Quantity) -> Figure:
    """One chart: ``quantity`` against ``size``, a panel for each entry of ``panels``."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = _places(panels)
    lines, columns = (1 + max(place[i] for place in places) for i in (0, 1))
    names = palette.order({r.implementation for panel in panels for r in panel.rows})
    with rc_context(STYLE):
        figure = Figure(figsize=(max(2.7 * columns, 3.2) + 1.9, 2.2 * lines + 0.45), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(lines, columns)
        died = [
            _panel(figure.add_subplot(grid[place]), panel, names, size, quantity)
            for place, panel in zip(places, panels, strict=True)
        ]
        figure.suptitle(_setting(panels), x=0.005, ha="left", fontsize=8, color="#666666")
        figure.supxlabel(SIZES[size], fontsize=9)
        figure.supylabel(quantity.label, fontsize=9)
        _legend(figure, names, any(died))
    return figure


def panels_of(rows: Iterable[Row], size: str) -> list[Panel]:
    """Rows by everything but ``size``, where there are two sizes to compare; titled by what differs."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    others = [f.name for f in fields(Workload) if f.name != size]
    for row in rows:
        key = (row.file, *(getattr(row.workload, name) for name in others))
        groups.setdefault(key, []).append(row)
    groups = {k: g for k, g in groups.items() if len({getattr(r.workload, size) for r in g} - {None}) > 1}
    varying = [i for i in range(len(others) + 1) if len({k[i] for k in groups}) > 1]
    panels = []
    for key, group in groups.items():
        parts = []
        for i in varying:
            if i == 0:
                parts.append(Path(str(key[0])).stem)
            elif others[i - 1] != "model" and key[i] is not None:
                parts.append(f"{SHORT.get(others[i - 1], others[i - 1])}={key[i]}")
        model, long, options = group[0].workload.model.partition("(")
        # Options of a model go to a line of their own, so that titles do not run into each other.
        title = "  ".join([long + options, *parts] if long else [model, *parts])
        panels.append(Panel(f"{model}\n{title}" if long else title, tuple(group)))
    return panels


def _places(panels: Sequence[Panel]) -> list[tuple[int, int]]:
    """Line and column of each panel: a line for each model if that leaves few gaps, else one after another."""
    models = [panel.model for panel in panels]
    distinct = list(dict.fromkeys(models))
    most = max(models.count(m) for m in distinct)
    if most <= MAX_COLUMNS and len(panels) >= 0.75 * most * len(distinct) and most > 1:
        return [(distinct.index(m), models[:i].count(m)) for i, m in enumerate(models)]
    columns = 3 if len(panels) in (5, 6, 9) else MAX_COLUMNS
    return [divmod(i, columns) for i in range(len(panels))]


def _setting(panels: Sequence[Panel]) -> str:
    """What all panels have in common and a reader has to know."""
    first = panels[0].rows[0].workload
    words = [f"{first.step} step"]
    for name in ("precision", "device", "threads", "layers", "trainable", "clip_style", "optimizer"):
        values = {getattr(r.workload, name) for panel in panels for r in panel.rows}
        value = values.pop()
        if not values and value not in (None, "all", "flat", "sgd"):
            words.append(f"{name} {value}" if name not in ("precision", "device") else str(value))
    return ", ".join(words)


def _panel(axes: Axes, panel: Panel, names: Sequence[str], size: str, quantity: Quantity) -> bool:
    """Draw one panel; whether a cross for memory that ran out is in it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axes.set_title(panel.title, loc="left", color="#222222")
    values = sorted({v for r in panel.rows if (v := getattr(r.workload, size)) is not None})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}".replace(",", "\N{THIN SPACE}")))
    margin = (values[-1] / values[0]) ** 0.08
    axes.set_xlim(values[0] / margin, values[-1] * margin)
    died: dict[Any, list[str]] = {}
    top = 0.0
    for name in reversed(names):
        own = sorted(
            (r for r in panel.rows if r.implementation == name), key=lambda r: getattr(r.workload, size) or 0
        )
        look = palette.look(name)
        points = [(getattr(r.workload, size), getattr(r, quantity.column)) for r in own]
        # A size without a figure interrupts the line: nothing is claimed there.
        xs = [x for x, _ in points]
        ys = [math.nan if y is None else y / quantity.scale for _, y in points]
        top = max([top, *(y for y in ys if y == y)])
        axes.plot(xs, ys, **_line(look))
        for row in own:
            if row.outcome is Outcome.OUT_OF_MEMORY:
                died.setdefault(getattr(row.workload, size), []).append(name)
    axes.set_ylim(0, (top or 1.0) * 1.12)
    _crosses(axes, died, names, at_top=quantity.name == "memory")
    return bool(died)


def _crosses(axes: Axes, died: dict[Any, list[str]], names: Sequence[str], at_top: bool) -> None:
    """A cross in its own colour for each implementation that ran out of memory, stacked where several did."""
    for x, who in died.items():
        for i, name in enumerate(n for n in names if n in who):
            axes.annotate(
                "\N{MULTIPLICATION SIGN}",
                (x, 1 if at_top else 0),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, -6 * i if at_top else 6 * i + 5),
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


def _legend(figure: Figure, names: Sequence[str], with_cross: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **_line(palette.look(name))) for name in names]
    if with_cross:
        handles.append(
            Line2D([], [], linestyle="", marker="x", color="#222222", markersize=5, label="out of memory")
        )
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.6, labelspacing=0.6)
