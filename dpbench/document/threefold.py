"""Charts of reproduced figures: dots for what was published, predicted and measured, or lines over a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpbench.document import drawing
from dpbench.reporting import palette
from dpbench.reporting.plots import SIZES
from dpbench.reporting.reproduction import named
from dpbench.reporting.style import style
from dpbench.reproduction import Number, Reproduced, Three, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 12
"""Panels of dots."""
LETTER = 0.065
"""Inches of one in the name of an implementation."""
NAMES = {"B": "batch", "T": "seq_len", "px": "image_size"}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart, and what it shows."""

    caption: str
    draw: Callable[[], Figure]


def drawn(figure: Reproduced, quantity: str, values: Sequence[Value]) -> Drawing | None:
    """Of one quantity: lines where it goes over a size without being published, else dots; None without figures."""
    size = _varying(values)
    what = quantity.replace("_", " ")
    if size is not None and not any(value.absolute.published for value in values):
        caption = f"{what} against {size}, predicted for {figure.card} at full size"
        return Drawing(caption, partial(_lines, values, size, f"{what}, {values[0].unit}"))
    relative = [value for value in values if _any(value.ratio)]
    said = "by formula, traced" if quantity == "flops" else f"predicted for {figure.card}, measured here"
    if relative:
        caption = f"{what}, ratio to {relative[0].relative_to}: published, {said}{_cut(relative)}"
        return Drawing(caption, partial(_dots, relative, lambda v: v.ratio, f"{what}, ratio"))
    if any(_any(value.absolute) for value in values) and figure.kind != "decisions":
        caption = f"{what}, {values[0].unit}: published, {said}{_cut(values)}"
        return Drawing(caption, partial(_dots, list(values), lambda v: v.absolute, f"{what}, {values[0].unit}"))
    return None


def _cut(values: Sequence[Value]) -> str:
    rows = len({value.row for value in values})
    return f"; the first {MOST_ROWS} of {rows} workloads" if rows > MOST_ROWS else ""


def _any(three: Three) -> bool:
    return any(n.value is not None for n in (three.published, three.predicted, three.measured))


def _varying(values: Sequence[Value]) -> str | None:
    """The one size in which the rows differ, and nothing else."""
    keys = {(v.model, v.sizes.get("B"), v.sizes.get("T"), v.sizes.get("px"), v.row) for v in values}
    several = [i for i in range(4) if len({key[i] for key in keys}) > 1]
    if len(several) != 1 or not several[0]:
        return None
    # Rows of one size may differ in what else a workload has.
    own = {key[several[0]] for key in keys}
    return ("model", "B", "T", "px")[several[0]] if None not in own and len(own) == len(keys) else None


def _lines(values: Sequence[Value], size: str, label: str) -> Figure:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    names = palette.order({v.implementation for v in values})
    with style():
        figure, (axes,) = drawing.panels(1, 4.6, 3.2)
        for name in names:
            own = sorted((v for v in values if v.implementation == name), key=lambda v: v.sizes[size])
            points = [
                (v.sizes[size], v.absolute.predicted.value) for v in own if v.absolute.predicted.value is not None
            ]
            look = drawing.marker(name) | {"linestyle": palette.look(name).line, "linewidth": 1.3}
            axes.plot([x for x, _ in points], [y for _, y in points], **look)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}".replace(",", "\N{THIN SPACE}")))
        axes.yaxis.set_minor_locator(NullLocator())
        ticks = sorted({v.sizes[size] for v in values})
        axes.set_xticks(ticks, [str(t) for t in ticks])
        axes.set_xlabel(SIZES[NAMES[size]])
        axes.set_ylabel(label)
        drawing.legend(figure, names)
    return figure


def _dots(values: Sequence[Value], of: Callable[[Value], Three], label: str) -> Figure:
    rows = list(dict.fromkeys(v.row for v in values))[:MOST_ROWS]
    most = max(sum(v.row == row for v in values) for row in rows)
    with style():
        names = max(len(named(v)) for v in values)
        figure, panels = drawing.panels(len(rows), 2.2 + LETTER * names, 0.55 + 0.24 * most, beside=1.4)
        for axes, row in zip(panels, rows, strict=True):
            _panel(axes, row, [v for v in values if v.row == row], of)
        figure.supxlabel(label, fontsize=9)
        _key(figure, published=any(of(v).published for v in values))
    return figure


def _panel(axes: Axes, row: str, values: Sequence[Value], of: Callable[[Value], Three]) -> None:
    axes.set_title(_wrapped(row), loc="left", color=drawing.INK)
    names = [named(v) for v in values]
    for y, value in enumerate(values):
        three, colour = of(value), palette.look(value.implementation).colour
        xs = [n.value for n in (three.published, three.predicted, three.measured) if n.value is not None]
        if len(xs) > 1:
            axes.plot([min(xs), max(xs)], [y, y], color="#cccccc", linewidth=1, zorder=1)
        _dot(axes, three.published, y, {"marker": "o", "markerfacecolor": "white", "markeredgecolor": drawing.INK})
        _dot(axes, three.predicted, y, {"marker": "D", "color": colour, "markersize": 5})
        _dot(axes, three.measured, y, {"marker": "|", "color": colour, "markersize": 11, "markeredgewidth": 2})
        if three.measured.low is not None and three.measured.high is not None:
            axes.plot([three.measured.low, three.measured.high], [y, y], color=colour, linewidth=2.5, alpha=0.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.set_xlim(0, 1.05 * axes.get_xlim()[1])


def _dot(axes: Axes, n: Number, y: float, look: dict[str, Any]) -> None:
    if n.value is not None:
        axes.plot([n.value], [y], linestyle="", zorder=3, clip_on=False, **look)


def _wrapped(row: str) -> str:
    model, _, rest = row.partition(" ")
    return f"{model}\n{rest}"


def _key(figure: Figure, published: bool) -> None:
    from matplotlib.lines import Line2D

    ink = drawing.INK
    handles = [
        Line2D([], [], linestyle="", marker="o", markerfacecolor="white", markeredgecolor=ink, label="published"),
        Line2D([], [], linestyle="", marker="D", color=ink, markersize=5, label="predicted"),
        Line2D([], [], linestyle="", marker="|", color=ink, markersize=11, markeredgewidth=2, label="measured here"),
    ]
    figure.legend(handles=handles if published else handles[1:], loc="outside right upper")
