"""BK: ghost norms and book-keeping, one backward in all.

Modules 1, 2a, 3, 2b: the activations and output gradients are kept, so that the clipped sum is one
product per layer, and no non-private gradient is formed.
Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, algorithm 1.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "BK algorithm"
MODULES = "1 2a 3 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """Norms and sum from the kept (a, ds)."""
    book: list[SampleGradient] = []

    def visit(g: SampleGradient) -> None:
        clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3
        book.append(g)

    tape.backward(visit)  # 2a
    return {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}  # 2b
