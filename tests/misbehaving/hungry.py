"""Is right at three examples, and asks for more memory than any machine has at more."""

import torch

from dpbench.batch import size
from dpbench.interface import Supports
from dpbench.registry import load

TITLE, MODULES, SUPPORTS, PRIVATE = "Hungry", "1", Supports(), True


class Hungry:
    def __init__(self, step):
        self._step = step

    def __call__(self, batch, *, unit=None, mask=None):
        if size(batch) > 3:
            torch.empty(1 << 46)
        return self._step(batch, unit=unit, mask=mask)

    def close(self):
        self._step.close()


def prepare(model, losses, clip):
    return Hungry(load("opacus").prepare(model, losses, clip))
