"""Charts of reproduced figures: lines over the one size in which workloads differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.drawing import Drawing
from dpbench.document.marks import FORMULA, PREDICTED
from dpbench.document.ticks import logarithmic
from dpbench.reporting import palette
from dpbench.reporting.plots import SIZES
from dpbench.reporting.reproduction import spelt
from dpbench.reporting.style import style
from dpbench.reproduction import Reproduced, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"B": "batch", "T": "seq_len", "px": "image_size"}
TOGETHER = 0.01
"""Points that are no farther apart, relative to each other, cover each other."""
WIDTH, WIDER = 1.3, 1.3
"""Points: of a line, and what one has more for each other that lies on it."""
HEIGHT, LINE = 165.0, 9.0
"""Points: of the panel, roughly, and of a line of text."""


def over_a_size(figure: Reproduced, quantity: str, values: Sequence[Value]) -> Drawing | None:
    """A line for each implementation; None where rows differ in more than one size, or something was published."""
    size = _varying(values)
    if size is None or any(value.absolute.published for value in values):
        return None
    if all(value.absolute.predicted.value is None for value in values):
        return None
    lines = _lines(values, size)
    died = _died(values, size)
    what = spelt(quantity)
    how = FORMULA if quantity == "flops" else PREDICTED
    caption = f"{what} against {size}, {how.label.format(card=figure.card)}, at full size"
    together = [" and ".join([", ".join(group[:-1]), group[-1]]) for group in coinciding(lines) if len(group) > 1]
    if together:
        caption += f"; within {100 * TOGETHER:g} % of each other at more than half of the sizes: {'; '.join(together)}"
    if died:
        caption += "; OOM: out of memory, at that size"
    return Drawing(caption, partial(_draw, lines, died, SIZES[NAMES[size]], f"{what}, {values[0].unit}"))


def coinciding(lines: Mapping[str, Mapping[int, float]]) -> list[list[str]]:
    """Names in groups: the lines of one cover its first at more than half of the sizes."""
    groups: list[list[str]] = []
    for name, points in lines.items():
        group = next((group for group in groups if _cover(points, lines[group[0]])), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def _cover(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    near = sum(math.isclose(y, other.get(x, math.nan), rel_tol=TOGETHER) for x, y in one.items())
    return near > len(one.keys() | other.keys()) / 2


def _varying(values: Sequence[Value]) -> str | None:
    """The one size in which the rows differ, and nothing else."""
    keys = {(v.model, v.sizes.get("B"), v.sizes.get("T"), v.sizes.get("px"), v.row) for v in values}
    several = [i for i in range(4) if len({key[i] for key in keys}) > 1]
    if len(several) != 1 or not several[0]:
        return None
    # Rows of one size may differ in what else a workload has.
    own = {key[several[0]] for key in keys}
    return ("model", "B", "T", "px")[several[0]] if None not in own and len(own) == len(keys) else None


def _lines(values: Sequence[Value], size: str) -> dict[str, dict[int, float]]:
    """By name and size; not a number where there is none, which interrupts a line: nothing is claimed there."""
    lines: dict[str, dict[int, float]] = {name: {} for name in palette.order({v.implementation for v in values})}
    for value in sorted(values, key=lambda v: v.sizes[size]):
        y = value.absolute.predicted.value
        lines[value.implementation][value.sizes[size]] = math.nan if y is None else y
    return lines


def _died(values: Sequence[Value], size: str) -> dict[str, int]:
    """The smallest size at which each runs out of memory, of those that do."""
    died = [(v.sizes[size], v.implementation) for v in values if v.absolute.predicted.word == "oom"]
    return {name: x for x, name in sorted(died, reverse=True)}


def _draw(lines: Mapping[str, Mapping[int, float]], died: Mapping[str, int], across: str, upwards: str) -> Figure:
    sizes = sorted({x for points in lines.values() for x in points})
    above = {name: len(group) - 1 - i for group in coinciding(lines) for i, name in enumerate(group)}
    with style():
        figure, (axes,) = drawing.panels(1, 4.6, 3.2)
        for name in sorted(lines, key=lambda name: -above[name]):
            look = drawing.marker(name) | {"linestyle": palette.look(name).line}
            look["linewidth"] = WIDTH + WIDER * above[name]
            look["markersize"] += 1.5 * WIDER * above[name]
            axes.plot(list(lines[name]), list(lines[name].values()), **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(x) for x in sizes])
        axes.minorticks_off()
        ys = [y for points in lines.values() for y in points.values() if not math.isnan(y)]
        logarithmic(axes, "y", [*ys, _room(ys, len(died))])
        _dead(axes, {name: died[name] for name in lines if name in died}, sizes)
        axes.set_xlabel(across)
        axes.set_ylabel(upwards)
        drawing.legend(figure, list(lines))
    return figure


def _room(ys: Sequence[float], lines: int) -> float:
    """Where an axis begins that has room for so many lines of text below the smallest."""
    share = (lines + 1) * LINE / HEIGHT if lines else 0.0
    return min(ys) / math.pow(max(ys) / min(ys), share / (1 - share))


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
            color=drawing.INK,
        )
