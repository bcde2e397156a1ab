"""GhostClip: norms from Grams over T, then a second backward of the reweighted losses.

Modules 1, 2a, 2b, 3, 2a, 2b: the first backward also forms the non-private gradient.
Source: Li et al. 2022, 2110.05679; Bu et al. 2022, 2205.10683.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "GhostClip algorithm"
MODULES = "1 2a 2b 3 2a 2b"
SUPPORTS = Supports(units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """One factor per example reweights its loss; the first 2b is wasted."""

    def visit(g: SampleGradient) -> None:
        clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3

    tape.backward(visit, wasted=tape.parameters, retain_graph=True)  # 2a 2b
    return tape.reweighted(clipping.factor())  # 2a 2b
