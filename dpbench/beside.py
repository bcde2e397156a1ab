"""A tree as it was at a git reference, as a side that is run beside this one: what each runs has to be its own."""

from __future__ import annotations

from pathlib import Path

from dpbench.errors import DpbenchError
from dpbench.records import Cell
from dpbench.sides import Side
from dpbench.suite import Suite, load
from dpbench.suitepath import find
from dpbench.sweep import names
from dpbench.worktree import top


def beside(reference: str, tree: Path, here: Path) -> tuple[Side, Side]:
    """The base, checked out in ``tree``, and what is in ``here``, the same folder of this checkout."""
    root = top(here)
    depth = len(here.relative_to(root).parts)
    moved = root, tree.parents[depth - 1] if depth else tree
    return Side(name=reference, checkout=tree, instead_of=moved), Side(name="this tree", checkout=here)


def lost(name: str, suite: Suite, tree: Path, here: Path) -> list[Cell]:
    """The cells that a suite had in the base, and has no more."""
    path = find(name).resolve()
    if not path.is_relative_to(here) or not (tree / path.relative_to(here)).is_file():
        return []
    now = set(suite.cells(names()))
    return [c for c in load(tree / path.relative_to(here)).cells(names()) if c not in now]


def refuse_absolute(suite: Suite, here: Path) -> None:
    """Raise where the base would run a file of this tree."""
    root = top(here)
    for cell in suite.cells(names()):
        for text in (cell.implementation, cell.workload.model):
            if Path(text).is_absolute() and Path(text).is_relative_to(root):
                raise DpbenchError(
                    f"{text} is an absolute path into this tree, which the base would run, too; give it relative to "
                    f"{here}"
                )
