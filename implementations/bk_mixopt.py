"""BK-MixOpt: ghost norms and book-keeping where 2 T^2 < p d, stored gradients elsewhere.

Modules 1, 2a, and 3, 2b or 4, 5: what was instantiated for the norm is used again for the sum.
Source: Bu et al. 2023, section 3.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "BK-MixOpt algorithm"
MODULES = "1 2a (3 2b or 4 5)"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """Ghost layers keep (a, ds), the others their per-sample gradients."""
    book: list[SampleGradient] = []
    stored: dict[str, Tensor] = {}

    def visit(g: SampleGradient) -> None:
        if g.ghost_needs_less_space:
            clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3
            book.append(g)
        else:
            stored[g.name] = g.instantiate()  # 4
            clipping.add_instantiated(g.name, stored[g.name])

    tape.backward(visit)  # 2a
    sums = {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}  # 2b
    return sums | clipping.weighted_sums(stored)  # 5
