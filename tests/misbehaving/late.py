"""Behaves for its first steps, and crashes in the middle of a round."""

import os
import signal

from dpbench.interface import Supports, load

TITLE, MODULES, SUPPORTS = "Late", "1", Supports()


class Late:
    def __init__(self, step):
        self._step, self._count = step, 0

    def __call__(self, batch, *, unit=None, mask=None):
        self._count += 1
        if self._count == 4:
            os.kill(os.getpid(), signal.SIGABRT)
        return self._step(batch, unit=unit, mask=mask)

    def close(self):
        self._step.close()


def prepare(model, losses, clip):
    return Late(load("opacus").prepare(model, losses, clip))
