"""The entry points that implementations are found through, ours and everybody's; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "dpbench.implementations"

LIBRARY = "lib:"
"""How the names of other libraries begin, which are run as themselves and only where they are asked for."""


@cache
def points() -> dict[str, EntryPoint]:
    """The entry points of the implementations that are installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def asked_for(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that ``all`` or a pattern stands for: libraries only if the pattern begins as theirs do."""
    own = pattern == "all" or not pattern.startswith(LIBRARY.rstrip(":"))
    wanted = "*" if pattern == "all" else pattern
    return [name for name in names if fnmatchcase(name, wanted) and not (own and name.startswith(LIBRARY))]
