"""The entry points that implementations are found through, ours and everybody's; nothing is loaded."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "dpbench.implementations"


@cache
def points() -> dict[str, EntryPoint]:
    """The entry points of the implementations that are installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}
