"""Opacus with ``ExpandedWeights``, which are torch's. Modules 1, 2a, 4, 5.

The losses have to call the model with its first input in first place: its size is taken for B.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dpbench.clipping import Clip
from dpbench.interface import Losses
from implementations.peers.opacus import OPACUS, STABILITY, SUPPORTS, Stored

__all__ = ["MODULES", "NEEDS", "PRIVATE", "STABILITY", "SUPPORTS", "TITLE", "prepare"]

TITLE = OPACUS.titled("ExpandedWeights")
NEEDS = OPACUS.needs
MODULES = "1 2a 4 5"
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Stored:
    """A step for ``model``."""
    return Stored(model, losses, clip, wrapped)


def wrapped(model: nn.Module) -> Any:
    """The model, whose weights are expanded in every forward."""
    from opacus.grad_sample import GradSampleModuleExpandedWeights

    return GradSampleModuleExpandedWeights(model, loss_reduction="sum")
