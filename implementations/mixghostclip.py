"""MixGhostClip: per layer the norm that needs less space, then a second backward.

Ghost layers (2 T^2 < p d) 1, 2a, 2b, 3, 2a, 2b; the others 1, 2a, 4, 2a, 2b.
Source: Bu et al. 2022, 2205.10683.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "MixGhostClip algorithm"
MODULES = "1 2a (2b 3 or 4) 2a 2b"
SUPPORTS = Supports(units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """One factor per example reweights its loss; the first 2b of ghost layers is wasted."""

    def visit(g: SampleGradient) -> None:
        if g.ghost_needs_less_space:
            clipping.add_squared_norms(g.name, g.squared_ghost_norm())  # 3
        else:
            clipping.add_instantiated(g.name, g.instantiate())  # 4, freed

    ghost = [name for name, facts in tape.facts().items() if facts.ghost_needs_less_space]
    tape.backward(visit, wasted=ghost, retain_graph=True)  # 2a, 2b of ghost layers
    return tape.reweighted(clipping.factor())  # 2a 2b
