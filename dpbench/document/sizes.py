"""Charts of reproduced figures: lines over the one size in which workloads differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.drawing import Drawing
from dpbench.document.ticks import logarithmic
from dpbench.reporting import palette
from dpbench.reporting.plots import SIZES
from dpbench.reporting.style import style
from dpbench.reproduction import Reproduced, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"B": "batch", "T": "seq_len", "px": "image_size"}
TOGETHER = 0.01
"""Lines that are nowhere farther apart, relative to each other, cover each other."""
WIDTH, WIDER = 1.3, 1.7
"""Points: a line, and what one has more that lies below another."""
HEIGHT, LINE = 165.0, 9.0
"""Points: of the panel, roughly, and of a line of text."""


def over_a_size(figure: Reproduced, quantity: str, values: Sequence[Value]) -> Drawing | None:
    """A line for each implementation; None where rows differ in more than one size, or something was published."""
    size = _varying(values)
    if size is None or any(value.absolute.published for value in values):
        return None
    if all(value.absolute.predicted.value is None for value in values):
        return None
    what = quantity.replace("_", " ")
    caption = f"{what} against {size}, predicted for {figure.card} at full size"
    names = palette.order({v.implementation for v in values})
    lines = {name: _points(values, name, size) for name in names}
    together = [" and ".join([", ".join(group[:-1]), group[-1]]) for group in coinciding(lines) if len(group) > 1]
    if together:
        caption += f"; within {TOGETHER:.0%} of each other: {'; '.join(together)}"
    if any(v.absolute.predicted.word == "oom" for v in values):
        caption += "; OOM: out of memory, from that size on"
    return Drawing(caption, partial(_draw, values, size, f"{what}, {values[0].unit}"))


def coinciding(lines: dict[str, dict[int, float]]) -> list[list[str]]:
    """Names by which lines cover each other, each in one group; a line without points is alone."""
    groups: list[list[str]] = []
    for name, points in lines.items():
        for group in groups:
            other = lines[group[0]]
            if points and points.keys() == other.keys() and all(
                math.isclose(y, other[x], rel_tol=TOGETHER) for x, y in points.items()
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _varying(values: Sequence[Value]) -> str | None:
    """The one size in which the rows differ, and nothing else."""
    keys = {(v.model, v.sizes.get("B"), v.sizes.get("T"), v.sizes.get("px"), v.row) for v in values}
    several = [i for i in range(4) if len({key[i] for key in keys}) > 1]
    if len(several) != 1 or not several[0]:
        return None
    # Rows of one size may differ in what else a workload has.
    own = {key[several[0]] for key in keys}
    return ("model", "B", "T", "px")[several[0]] if None not in own and len(own) == len(keys) else None


def _points(values: Sequence[Value], name: str, size: str) -> dict[int, float]:
    own = [(v.sizes[size], v.absolute.predicted.value) for v in values if v.implementation == name]
    return {x: y for x, y in sorted(own, key=lambda point: point[0]) if y is not None}


def _draw(values: Sequence[Value], size: str, label: str) -> Figure:
    names = palette.order({v.implementation for v in values})
    sizes = sorted({v.sizes[size] for v in values})
    lines = {name: _points(values, name, size) for name in names}
    below = {name: len(group) - 1 - i for group in coinciding(lines) for i, name in enumerate(group)}
    died = {
        name: min(own)
        for name in names
        if (own := [v.sizes[size] for v in values if v.implementation == name and v.absolute.predicted.word == "oom"])
    }
    with style():
        figure, (axes,) = drawing.panels(1, 4.6, 3.2)
        for name in sorted(names, key=lambda name: -below[name]):
            # A size without a number interrupts the line: nothing is claimed there.
            ys = [lines[name].get(x, math.nan) for x in sizes]
            wide = WIDTH + WIDER * below[name]
            look = drawing.marker(name) | {"linestyle": palette.look(name).line, "linewidth": wide}
            look["markersize"] += 1.5 * WIDER * below[name]
            axes.plot(sizes, ys, **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(x) for x in sizes])
        axes.minorticks_off()
        ys = [y for points in lines.values() for y in points.values()]
        logarithmic(axes, "y", [*ys, _room(ys, len(died))])
        _dead(axes, died, sizes)
        axes.set_xlabel(SIZES[NAMES[size]])
        axes.set_ylabel(label)
        drawing.legend(figure, names)
    return figure


def _room(ys: Sequence[float], lines: int) -> float:
    """Where an axis begins that has room for so many lines of text below the smallest."""
    share = (lines + 1) * LINE / HEIGHT if lines else 0.0
    return min(ys) / (max(ys) / min(ys)) ** (share / (1 - share))


def _dead(axes: Axes, died: dict[str, int], sizes: Sequence[int]) -> None:
    """At the size where memory runs out, the names that it runs out for."""
    for i, (name, x) in enumerate(reversed(died.items())):
        axes.annotate(
            f"{name} OOM",
            (x, 0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 4 + LINE * i),
            textcoords="offset points",
            ha="right" if sizes.index(x) >= len(sizes) / 2 else "left",
            fontsize=7,
            color=palette.look(name).colour,
        )
