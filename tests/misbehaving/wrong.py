"""Scales one parameter's gradient by a little."""

from dpbench.interface import Supports
from dpbench.registry import load

TITLE, MODULES, SUPPORTS, PRIVATE = "Wrong", "1", Supports(), True


class Wrong:
    def __init__(self, step):
        self._step = step

    def __call__(self, batch, *, unit=None, mask=None):
        out = self._step(batch, unit=unit, mask=mask)
        next(iter(out.grads.values())).mul_(1 + 1e-6)
        return out

    def close(self):
        self._step.close()


def prepare(model, losses, clip):
    return Wrong(load("opacus").prepare(model, losses, clip))
