"""Has a bug, and prints to stdout, which belongs to nobody but the command."""

from dpbench.interface import Supports

TITLE, MODULES, SUPPORTS, PRIVATE = "Raises", "1", Supports(), True


def prepare(model, losses, clip):
    print("this must not be seen on stdout")
    return {}["no such key"]
