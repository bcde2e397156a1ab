"""Book-keeping that idles for a tenth of every step: a slowdown whose size is known."""

from time import perf_counter

from dpbench.interface import Supports
from dpbench.registry import load

TITLE = "BK algorithm, and a pause of a tenth of its time"
MODULES = "1 2a 3 2b"
SUPPORTS = Supports(units=True)
PRIVATE = True
SLOWER = 0.10


def prepare(model, losses, clip):
    return Pausing(load("bk").prepare(model, losses, clip))


class Pausing:
    def __init__(self, step):
        self._step, self.close = step, step.close

    def __call__(self, batch, unit=None, mask=None):
        start = perf_counter()
        out = self._step(batch, unit=unit, mask=mask)
        end = (1 + SLOWER) * (perf_counter() - start) + start
        while perf_counter() < end:
            pass
        return out
