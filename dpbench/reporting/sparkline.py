"""A series as one line of small bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-=*#"
"""Where a terminal has no others."""
WIDTH = 30
SPREAD = 1.1
"""Largest over smallest figure that fills the height, if the figures' own is less: noise is to look flat."""


def sparkline(figures: Sequence[float | None], unicode: bool, width: int = WIDTH) -> str:
    """A bar for each figure, a cross for each None; of more than ``width``, one for the median of neighbours."""
    bars, cross = (BARS, "×") if unicode else (ASCII_BARS, "x")
    columns = min(width, len(figures))
    ends = [round(i * len(figures) / columns) for i in range(columns + 1)] if columns else []
    groups = [figures[a:b] for a, b in pairwise(ends)]
    heights = [None if None in group else median(f for f in group if f is not None) for group in groups]
    known = [h for h in heights if h is not None]
    low = min(known, default=0.0)
    span = max(max(known, default=0.0) - low, low * (SPREAD - 1)) or 1.0
    return "".join(cross if h is None else bars[min(int((h - low) / span * len(bars)), len(bars) - 1)] for h in heights)
