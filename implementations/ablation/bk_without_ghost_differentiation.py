"""BK without ghost differentiation: ghost norms and book-keeping, beside a gradient that no one needs.

Modules 1, 2a, 2b, 3, 2b: the backward also forms the non-private gradient, and the clipped sum comes
from the kept activations and output gradients.
Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, of whose three tricks it has two.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "BK algorithm without ghost differentiation"
MODULES = "1 2a 2b 3 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """Norms and sum from the kept (a, ds); the first 2b is wasted."""
    book: list[SampleGradient] = []

    def visit(g: SampleGradient) -> None:
        clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3
        book.append(g)

    tape.backward(visit, wasted=tape.parameters)  # 2a 2b
    return {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}  # 2b
