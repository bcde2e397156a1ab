"""How a value of a reproduced figure is marked: the shape says how it was come by, the colour whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpbench.document.drawing import INK
from dpbench.reporting import palette
from dpbench.reproduction import Number, Value

BAR = ((-0.22, -1.0), (0.22, -1.0), (0.22, 1.0), (-0.22, 1.0), (-0.22, -1.0))
MODULE = "module "
"""How terms begin that are of a module, and of no implementation."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One of what a key lists."""

    label: str
    """With the card in place of ``{card}``."""
    shape: Any
    size: float
    hollow: bool = False
    reduced: bool = False
    """At a reduced size: hollow, and below what is at full size."""

    def look(self, colour: str) -> dict[str, Any]:
        """In matplotlib's terms."""
        # Two at a reduced size are seen through each other.
        face = "none" if self.reduced else "white"
        hollow = {"markerfacecolor": face, "markeredgecolor": colour, "markeredgewidth": 1.1}
        solid = {"markeredgewidth": 0}
        shape = {"marker": self.shape, "markersize": self.size, "linestyle": "", "color": colour}
        return shape | (hollow if self.hollow else solid)


PUBLISHED = Mark("published", "o", 6.5, hollow=True)
PREDICTED = Mark("predicted for {card}", "D", 4.6)
MEASURED = Mark("measured here", BAR, 11)
FORMULA, TRACED = replace(PREDICTED, label="by formula"), replace(MEASURED, label="traced")
EXPECTED = Mark("expected here, at a reduced size", "D", 3.6, hollow=True, reduced=True)
REDUCED = Mark("measured here, at a reduced size", BAR, 9, hollow=True, reduced=True)
ORDER = (PUBLISHED, PREDICTED, FORMULA, MEASURED, TRACED, EXPECTED, REDUCED)
"""In a key."""


def marked(value: Value, relative: bool) -> Iterator[tuple[Mark, Number]]:
    """What there is of it, numbers and words: ratios, or as they are.

    Ratios at a reduced size can be held against those at full size; bytes and rates of that size say nothing there.
    """
    three, counted = value.ratio if relative else value.absolute, value.quantity == "flops"
    found = [(PUBLISHED, three.published), (FORMULA if counted else PREDICTED, three.predicted)]
    if not value.at:
        found.append((TRACED if counted else MEASURED, three.measured))
    elif relative:
        found += [(EXPECTED, value.expected_here), (REDUCED, three.measured)]
    return (each for each in found if each[1])


def colour(value: Value) -> str:
    """That of its implementation; ink for a module."""
    name = value.implementation
    return INK if name.startswith(MODULE) else palette.look(name).colour


def word(n: Number) -> str:
    """What stands in a number's place: ``OOM``, ``≥40``, ``refused``."""
    short = n.word.partition(":")[0]
    return "OOM" if short == "oom" else short.replace(">=", "≥").replace("<=", "≤")
