"""Behaves until it is timed, which shows in the garbage collector being off, and then crashes."""

import gc
import os
import signal

from dpbench.interface import Supports
from dpbench.registry import load

TITLE, MODULES, SUPPORTS, PRIVATE = "Late", "1", Supports(), True


class Late:
    def __init__(self, step):
        self._step = step

    def __call__(self, batch, *, unit=None, mask=None):
        if not gc.isenabled():
            os.kill(os.getpid(), signal.SIGABRT)
        return self._step(batch, unit=unit, mask=mask)

    def close(self):
        self._step.close()


def prepare(model, losses, clip):
    return Late(load("opacus").prepare(model, losses, clip))
