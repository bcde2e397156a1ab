"""The signals that end a run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any


def ended_as_interrupted() -> None:
    """A scheduler that ends the run is told where to go on, too, as by Ctrl-C."""
    _on_signals(signal.default_int_handler)


def not_interrupted_again() -> None:
    """A second one would break off the tidying up."""
    _on_signals(signal.SIG_IGN)


def _on_signals(handler: signal.Handlers | Callable[[int, FrameType | None], Any]) -> None:
    """What nohup has ignored stays so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)
