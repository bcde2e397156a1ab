"""Opacus with hooks: ``GradSampleModule``, its default. Modules 1, 2a, 2b, 4, 5.

Layers that have no rule there go through torch.func.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dpbench.clipping import Clip
from dpbench.interface import Losses
from implementations.peers.opacus import OPACUS, STABILITY, SUPPORTS, Stored

__all__ = ["MODULES", "NEEDS", "PRIVATE", "STABILITY", "SUPPORTS", "TITLE", "prepare"]

TITLE = OPACUS.titled("hooks")
NEEDS = OPACUS.needs
MODULES = "1 2a 2b 4 5"
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Stored:
    """A step for ``model``."""
    return Stored(model, losses, clip, wrapped)


def wrapped(model: nn.Module) -> Any:
    """The model with hooks on its layers."""
    from opacus.grad_sample import GradSampleModule

    return GradSampleModule(model, loss_reduction="sum")
