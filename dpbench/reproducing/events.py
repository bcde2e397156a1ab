"""What happens while figures are reproduced. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.paper import Figure
from dpbench.reproduction import Reproduced
from dpbench.rows import Row


@dataclass(frozen=True, slots=True)
class Begun:
    """Work on a figure begins."""

    figure: Figure
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Something is built, or was predicted or counted."""

    what: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A cell was measured."""

    row: Row
    number: int
    of: int


Event = Begun | Progress | Seen | Reproduced
