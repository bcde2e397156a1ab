"""FastGradClip with book-keeping instead of its second backward.

Modules 1, 2a, 4, 2b.
Source: Bu et al. 2023, appendix on improving existing implementations.
"""

from __future__ import annotations

from torch import Tensor, nn

from dpbench.clipping import Clip, Clipping
from dpbench.gradient import SampleGradient
from dpbench.interface import Losses, Step, Supports
from dpbench.tape import Tape
from dpbench.tapestep import TapeStep

TITLE = "FastGradClip algorithm, improved"
MODULES = "1 2a 4 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Step:
    """A step for ``model``."""
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape: Tape, clipping: Clipping) -> dict[str, Tensor]:
    """Norms from freed per-sample gradients, the sum from the kept (a, ds)."""
    book: list[SampleGradient] = []

    def visit(g: SampleGradient) -> None:
        clipping.add_instantiated(g.name, g.instantiate())  # 4, freed
        book.append(g)

    tape.backward(visit)  # 2a
    return {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}  # 2b
