"""FastGradClip: instantiate for the norms, free at once, and backpropagate the reweighted losses.

Modules 1, 2a, 4, 2a, 2b.
Source: Lee and Kifer 2020, 2009.03106.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "FastGradClip algorithm"
MODULES = "1 2a 4 2a 2b"
SUPPORTS = Supports(units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """One factor per example reweights its loss."""

    def visit(g: SampleGradient) -> None:
        clipping.add_instantiated(g.name, g.instantiate())  # 4, freed

    tape.backward(visit, retain_graph=True)  # 2a
    return tape.reweighted(clipping.factor())  # 2a 2b
