"""Logarithmic axes for ratios and sizes, with ticks at numbers that people say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from dpbench.reporting.numbers import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
"""Of a decade, from many to few."""
FINEST = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Steps, relative to the middle, where an axis spans less than a factor of two."""
MOST = 6


def logarithmic(axes: Axes, which: Literal["x", "y"], values: Sequence[float], room: float = 0.05) -> None:
    """Scale and limits for positive ``values``, with that part of the axis left free at either end."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(values), max(values)
    margin = max((high / low) ** room, 1.02)
    low, high = low / margin, high * margin
    if which == "x":
        axes.set(xscale="log", xlim=(low, high))
    else:
        axes.set(yscale="log", ylim=(low, high))
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(v)))


def ticks(low: float, high: float) -> list[float]:
    """At most six numbers between, two where that can be."""
    if high / low < 2:
        return _even(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found: list[float] = []
    for steps in STEPS:
        found = [s * 10.0**e for e in range(first, last + 1) for s in steps if low <= s * 10.0**e <= high]
        if len(found) <= MOST:
            return found
    every = math.ceil(len(found) / MOST)
    return found[::every]


def short(value: float) -> str:
    """``0.75``, ``1``, ``20``, ``1e+06``: as many digits as it has, three at most."""
    text = significant(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _even(low: float, high: float) -> list[float]:
    scale = 10.0 ** math.floor(math.log10(high))
    for step in FINEST:
        width = step * scale
        found = [i * width for i in range(math.ceil(low / width), math.floor(high / width) + 1)]
        if 1 < len(found) <= MOST:
            return found
    return [float(significant(math.sqrt(low * high)))]
