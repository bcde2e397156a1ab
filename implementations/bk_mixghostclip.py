"""BK-MixGhostClip: per layer the norm that needs less space, and book-keeping.

Modules 1, 2a, 3 (where 2 T^2 < p d) or 4 (freed), 2b.
Source: Bu et al. 2023, section 3.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "BK-MixGhostClip algorithm"
MODULES = "1 2a (3 or 4) 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """Norms by the cheaper space, the sum from the kept (a, ds)."""
    book: list[SampleGradient] = []

    def visit(g: SampleGradient) -> None:
        if g.ghost_needs_less_space:
            clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3
        else:
            clipping.add_instantiated(g.name, g.instantiate())  # 4, freed
        book.append(g)

    tape.backward(visit)  # 2a
    return {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}  # 2b
