"""One implementation on one workload of a figure, at full size and as it is measured here."""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.paper import Run
from dpbench.records import Cell


@dataclass(frozen=True, slots=True)
class Point:
    """A cell of a figure."""

    run: Run
    full: Cell
    here: Cell | None
    """As it is measured; None where it is left out."""
