"""What the charts of a report have in common: a grid of panels, a legend of implementations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpbench.reporting import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#222222", "#666666"
MOST_PANELS = 12
"""Of one chart: more are too small to read."""
COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart, and what it shows."""

    caption: str
    draw: Callable[[], Figure]


def figure(width: float, height: float) -> Figure:
    """An empty one, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def panels(number: int, width: float, height: float, beside: float = 1.9) -> tuple[Figure, list[Axes]]:
    """So many panels of that size in rows; ``beside``: room for the legend."""
    columns = min(number, 3 if number in (5, 6, 9) else COLUMNS)
    lines = math.ceil(number / columns)
    made = figure(max(width * columns, 3.2) + beside, height * lines + 0.35)
    grid = made.add_gridspec(lines, columns)
    return made, [made.add_subplot(grid[divmod(i, columns)]) for i in range(number)]


def marker(name: str, hollow: bool = False) -> dict[str, Any]:
    """How a point of an implementation looks; hollow where not all parameters were trained."""
    look = palette.look(name)
    size = 8 if look.marker == "*" else 6.5
    edge = {"markerfacecolor": "white", "markeredgecolor": look.colour, "markeredgewidth": 1.2}
    solid = {"markeredgecolor": "white", "markeredgewidth": 0.4}
    return {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": "",
        "markersize": size,
        **(edge if hollow else solid),
    }


def legend(of: Figure, names: Sequence[str], more: Sequence[Any] = (), hollow: bool = False) -> None:
    """The implementations, in the order of every chart, and whatever else is drawn."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **marker(name)) for name in names]
    if hollow:
        look: dict[str, Any] = {
            "markerfacecolor": "white",
            "markeredgecolor": INK,
            "markeredgewidth": 1.2,
            "marker": "o",
        }
        handles.append(Line2D([], [], linestyle="", label="not all parameters trained", **look))
    of.legend(handles=[*handles, *more], loc="outside right upper", handlelength=1.6, labelspacing=0.6)
