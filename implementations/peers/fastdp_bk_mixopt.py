"""fastDP in clipping mode ``MixOpt``. Ghost layers 1, 2a, 2b, 3, 2b; the others 1, 2a, 2b, 4, 5."""

from __future__ import annotations

from torch import nn

from dpbench.clipping import Clip
from dpbench.interface import Losses
from implementations.peers.fastdp import FASTDP, STABILITY, SUPPORTS, Engine

__all__ = ["MODULES", "NEEDS", "PRIVATE", "STABILITY", "SUPPORTS", "TITLE", "prepare"]

TITLE = FASTDP.titled("clipping mode MixOpt")
NEEDS = FASTDP.needs
MODULES = "1 2a 2b (3 2b or 4 5)"
PRIVATE = True


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Engine:
    """A step for ``model``."""
    return Engine(model, losses, clip, "MixOpt")
