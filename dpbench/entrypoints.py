"""The entry points that implementations are found through, ours and everybody's; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "dpbench.implementations"

LIBRARY, ABLATION = "lib:", "ablation:"
"""How the names of other libraries begin, which are run as themselves, and of algorithms with a part taken away."""
APART = LIBRARY, ABLATION
"""What begins so is run only where it is asked for."""


@cache
def points() -> dict[str, EntryPoint]:
    """The entry points of the implementations that are installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def asked_for(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that ``all`` or a pattern stands for: those apart only if the pattern begins as theirs do."""
    wanted = "*" if pattern == "all" else pattern
    others = tuple(prefix for prefix in APART if not wanted.startswith(prefix.rstrip(":")))
    return [name for name in names if fnmatchcase(name, wanted) and not name.startswith(others)]
