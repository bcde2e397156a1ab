"""The Opacus algorithm: instantiate every per-sample gradient, store it, clip, add up.

Modules 1, 2a, 2b, 4, 5: the backward also forms the non-private gradient, which no one needs.
Source: Yousefpour et al. 2021, 2109.12298; Bu et al. 2023, table 2.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "Opacus algorithm"
MODULES = "1 2a 2b 4 5"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=True)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """2b is wasted; the (B, p d) gradients are stored until all norms are known."""
    stored: dict[str, Tensor] = {}

    def visit(g: SampleGradient) -> None:
        stored[g.name] = g.instantiate()  # 4
        clipping.add_instantiated(g.name, stored[g.name])

    tape.backward(visit, wasted=tape.parameters)  # 2a 2b
    return clipping.weighted_sums(stored)  # 5
