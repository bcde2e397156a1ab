"""The Opacus algorithm without its wasted non-private gradient (ghost differentiation).

Modules 1, 2a, 4, 5.
Source: Bu et al. 2023, appendix on improving existing implementations.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "Opacus algorithm, improved"
MODULES = "1 2a 4 5"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """The (B, p d) gradients are stored until all norms are known."""
    stored: dict[str, Tensor] = {}

    def visit(g: SampleGradient) -> None:
        stored[g.name] = g.instantiate()  # 4
        clipping.add_instantiated(g.name, stored[g.name])

    tape.backward(visit)  # 2a
    return clipping.weighted_sums(stored)  # 5
