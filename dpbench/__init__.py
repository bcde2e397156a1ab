"""dpbench: benchmarks and complexity analysis of DP-SGD gradient implementations."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpbench.api import run
    from dpbench.clipping import Clip
    from dpbench.errors import DpbenchError, Refused
    from dpbench.frame import load
    from dpbench.interface import Output, Step
    from dpbench.noise import privatize
    from dpbench.preparation import prepare
    from dpbench.records import Workload

__all__ = ["Clip", "DpbenchError", "Output", "Refused", "Step", "Workload", "load", "prepare", "privatize", "run"]

_HOMES = {
    "Clip": "clipping",
    "DpbenchError": "errors",
    "Output": "interface",
    "Refused": "errors",
    "Step": "interface",
    "Workload": "records",
    "load": "frame",
    "prepare": "preparation",
    "privatize": "noise",
    "run": "api",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for and no more, so that results are read without loading torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpbench' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpbench.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
