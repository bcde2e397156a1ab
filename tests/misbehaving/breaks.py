"""Leaves the device of no use: whatever is asked of CUDA in its process fails from then on."""

from dpbench.interface import Supports

TITLE, MODULES, SUPPORTS, PRIVATE = "Breaks", "1", Supports(), True


def prepare(model, losses, clip):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
