"""Charts of reproduced figures: a row of dots for what was published, predicted and measured of an implementation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

from dpbench.document import drawing
from dpbench.document.drawing import INK, Drawing
from dpbench.document.marks import FORMULA, ORDER, PREDICTED, PUBLISHED, Mark, colour, marked, word
from dpbench.document.sizes import over_a_size
from dpbench.document.ticks import logarithmic
from dpbench.reporting.reproduction import named, spelt
from dpbench.reporting.style import style
from dpbench.reproduction import Number, Reproduced, Three, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 12
"""Panels of dots."""
LOGARITHMIC_FROM = 20
"""Largest over smallest number of a chart above which its axis is logarithmic."""
WIDTH, LETTER = 2.2, 0.065
"""Inches: of a panel, and of a letter beside it."""
TITLE, KEY = 27, 24
"""Letters in a line of a panel's title, and of the key."""
JOINED = (PUBLISHED, PREDICTED, FORMULA)
"""Their distance is what a figure is reproduced for."""
PALE = "#bbbbbb"
LANE = 0.19
"""How far above the middle of a row what is at full size lies, and below it what is not."""
APART, CHARACTER = 8.0, 4.8
"""Points: between marks, and of a letter, at the end of a row."""

Row = tuple[Value, Mapping[Mark, Number]]
"""A value, and what is drawn of it."""


def drawn(figure: Reproduced, quantity: str, values: Sequence[Value]) -> Drawing | None:
    """Of one quantity: lines where it goes over a size without being published, else dots; None without numbers."""
    if figure.kind == "decisions":
        return None
    if (lines := over_a_size(figure, quantity, values)) is not None:
        return lines
    relative = _relative(values)
    every = [(value, found) for value in values if (found := dict(marked(value, relative)))]
    workloads = list(dict.fromkeys(value.row for value, _ in every))
    rows = [row for row in every if row[0].row in workloads[:MOST_ROWS]]
    if not _numbers(rows):
        return None
    what = f"{spelt(quantity)}, {_to(rows) if relative else values[0].unit}"
    key = {mark: mark.label.format(card=figure.card) for mark in ORDER if any(mark in found for _, found in rows)}
    caption = f"{what}: {', '.join(key.values())}"
    if any(n.word == "oom" for _, found in rows for n in found.values()):
        caption += "; OOM: out of memory"
    if not relative and any(value.at and value.absolute.measured for value, _ in rows):
        caption += "; what was measured at a reduced size is in the table"
    if len(workloads) > MOST_ROWS:
        caption += f"; the first {MOST_ROWS} of {len(workloads)} workloads"
    return Drawing(caption, partial(_draw, rows, relative, what, key))


def _relative(values: Sequence[Value]) -> bool:
    """Whether ratios are drawn: where such were published, or can be made of what was, or nothing was at all."""
    if any(value.absolute.published or value.ratio.published for value in values):
        return any(value.ratio.published for value in values)
    return any(value.ratio != Three() for value in values)


def _numbers(rows: Sequence[Row]) -> list[float]:
    """All that an axis has to hold."""
    each = [n for _, found in rows for n in found.values() if n.value is not None]
    return [x for n in each for x in (n.value, n.low, n.high) if x is not None]


def _to(rows: Sequence[Row]) -> str:
    to = {value.relative_to for value, _ in rows}
    return f"ratio to {to.pop()}" if len(to) == 1 else "ratio to nonprivate, or as named"


def _draw(rows: Sequence[Row], relative: bool, label: str, key: Mapping[Mark, str]) -> Figure:
    workloads = list(dict.fromkeys(value.row for value, _ in rows))
    own = {workload: [row for row in rows if row[0].row == workload] for workload in workloads}
    names = [[named(value) for value, _ in some] for some in own.values()]
    # Names that are the same in every panel stand beside the first of a line.
    same = all(each == names[0] for each in names)
    beside = LETTER * max(len(name) for each in names for name in each)
    titles = [_title(workload) for workload in workloads]
    height = 0.35 + 0.15 * max(title.count("\n") for title in titles)
    height += (0.3 if any(mark.reduced for mark in key) else 0.24) * max(map(len, names))
    with style():
        longest = max(len(word(n)) for _, found in rows for n in found.values())
        width = WIDTH + (LETTER * (longest + 3) if longest else 0.0)
        room = KEY * LETTER + 0.3
        if same:
            figure, panels = drawing.panels(len(own), width, height, room + beside)
        else:
            figure, panels = drawing.panels(len(own), width + beside, height, room)
        for axes, title, some in zip(panels, titles, own.values(), strict=True):
            axes.set_title(title, loc="left", color=INK)
            _panel(axes, some)
            _axis(axes, _numbers(rows), relative)
            place = axes.get_subplotspec()
            if same and place is not None and not place.is_first_col():
                axes.tick_params(labelleft=False)
        figure.supxlabel(label, fontsize=9)
        _key(figure, key)
    return figure


def _title(workload: str) -> str:
    """The model, and what it was run with."""
    model, _, rest = workload.partition(" ")
    return _wrapped(workload) if "=" in model else "\n".join(_wrapped(part) for part in (model, rest) if part)


def _wrapped(text: str) -> str:
    """Between words, and within one that is longer than a line."""
    lines = [""]
    for whole in text.split():
        parts = [whole] if len(whole) <= TITLE else re.findall(r"[^:,_/]+[:,_/]*|[:,_/]+", whole)
        for i, part in enumerate(parts):
            apart = " " if lines[-1] and not i else ""
            if len(lines[-1] + apart + part) > TITLE and lines[-1]:
                lines.append(part)
            else:
                lines[-1] += apart + part
    return "\n".join(lines)


def _axis(axes: Axes, numbers: Sequence[float], relative: bool) -> None:
    """The same in every panel: from zero, or logarithmic where that would crowd most of it into one place."""
    low, high = min(numbers), max(numbers)
    if relative:
        axes.axvline(1, color=PALE, linewidth=1.2, zorder=1)
    if low > 0 and high / low > LOGARITHMIC_FROM:
        logarithmic(axes, "x", [*numbers, 1.0] if relative else numbers)
    else:
        axes.set_xlim(0, 1.05 * (max(high, 1.0) if relative else high or 1.0))
        axes.locator_params(axis="x", nbins=6)


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    for place, (value, found) in enumerate(rows):
        ink = colour(value)
        lanes = {mark.reduced for mark in found}
        words: dict[tuple[float, str], list[Mark]] = {}
        for mark, n in found.items():
            y = place + (0.0 if len(lanes) == 1 else LANE if mark.reduced else -LANE)
            if n.value is None:
                words.setdefault((y, word(n)), []).append(mark)
                continue
            if n.low is not None and n.high is not None:
                axes.plot([n.low, n.high], [y, y], color=ink, linewidth=1 if mark.reduced else 2.5, alpha=0.5)
            axes.plot([n.value], [y], zorder=3, clip_on=False, **mark.look(_ink(mark, ink)))
        ends = [n.value for mark, n in found.items() if mark in JOINED and n.value is not None]
        if len(ends) == 2:
            y = place - (LANE if len(lanes) == 2 else 0.0)
            axes.plot(ends, [y, y], color=PALE, linewidth=1.2, zorder=2)
        _words(axes, words, ink)
    axes.set_yticks(range(len(rows)), [named(value) for value, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")


def _ink(mark: Mark, ink: str) -> str:
    return INK if mark is PUBLISHED else ink


def _words(axes: Axes, words: Mapping[tuple[float, str], Sequence[Mark]], ink: str) -> None:
    """Beside the row, what stands in the place of numbers, each behind the marks that it stands for."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    offset: dict[float, float] = {}
    for (y, said), marks in words.items():
        x = offset.get(y, APART)
        for mark in marks:
            moved = axes.get_yaxis_transform() + ScaledTranslation(x / 72, 0, figure.dpi_scale_trans)
            axes.plot([1], [y], transform=moved, clip_on=False, **mark.look(_ink(mark, ink)))
            x += APART
        axes.annotate(
            said,
            (1, y),
            xycoords=axes.get_yaxis_transform(),
            xytext=(x - APART / 4, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=7.5,
            color=INK,
            annotation_clip=False,
        )
        offset[y] = x + CHARACTER * len(said) + APART


def _key(figure: Figure, key: Mapping[Mark, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=fill(label, KEY), **mark.look(INK)) for mark, label in key.items()]
    figure.legend(handles=handles, loc="outside right upper", labelspacing=0.8)
