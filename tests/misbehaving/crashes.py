"""Takes its process down with a segmentation fault."""

import os
import signal

from dpbench.interface import Supports

TITLE, MODULES, SUPPORTS, PRIVATE = "Crashes", "1", Supports(), True


def prepare(model, losses, clip):
    os.kill(os.getpid(), signal.SIGSEGV)
