"""Refuses every model by name."""

from dpbench.errors import Refused
from dpbench.interface import Supports

TITLE, MODULES, SUPPORTS, PRIVATE = "Refuses", "1", Supports(), True


def prepare(model, losses, clip):
    raise Refused(f"{type(model).__name__} is not to my taste")
