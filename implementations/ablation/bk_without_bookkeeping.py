"""BK without book-keeping: ghost norms and ghost differentiation, and a second backward for the clipped sum.

Modules 1, 2a, 3, 2a, 2b: nothing is kept between the backwards, and 2a is done twice. It is GhostClip
without the non-private gradient of its first backward.
Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, of whose three tricks it has two.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "BK algorithm without book-keeping"
MODULES = "1 2a 3 2a 2b"
SUPPORTS = Supports(units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """One factor per example reweights its loss."""

    def visit(g: SampleGradient) -> None:
        clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3

    tape.backward(visit, retain_graph=True)  # 2a
    return tape.reweighted(clipping.factor())  # 2a 2b
