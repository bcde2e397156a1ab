"""Opacus's fast gradient clipping: norms of per-sample gradients that are let go of. Modules 1, 2a, 2b, 4, 2a, 2b."""

from __future__ import annotations

from torch import nn

from dpbench.clipping import Clip
from dpbench.interface import Losses
from implementations.peers.opacus import OPACUS, STABILITY, SUPPORTS, Twice

__all__ = ["MODULES", "NEEDS", "PRIVATE", "STABILITY", "SUPPORTS", "TITLE", "prepare"]

TITLE = OPACUS.titled("fast gradient clipping")
NEEDS = OPACUS.needs
MODULES = "1 2a 2b 4 2a 2b"
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Twice:
    """A step for ``model``."""
    return Twice(model, losses, clip, ghost=False)
