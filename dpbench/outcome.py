"""What became of a cell, judged from the exception it raised or from how its process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from dpbench.errors import DpbenchError, Refused
from dpbench.faults import OUT_OF_MEMORY, ran_out_of_memory
from dpbench.records import Outcome


def of_exception(error: BaseException) -> tuple[Outcome, str]:
    """The outcome that an exception of an implementation stands for, and why, in one line."""
    name, text = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, Refused):
        return Outcome.REFUSED, text
    if ran_out_of_memory(error):
        return Outcome.OUT_OF_MEMORY, _sentence(text) or "memory ran out"
    if isinstance(error, DpbenchError):
        return Outcome.FAILED, text
    return Outcome.FAILED, f"{name}: {text}" if text else name


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended."""

    status: int
    """Exit status, or minus the number of the signal."""
    said: str = ""
    """The last lines that it wrote to stderr."""
    out_of_memory_kills: int | None = None
    """How many processes the kernel killed for want of memory meanwhile; None where it does not tell."""


def of_ending(ending: Ending) -> tuple[Outcome, str]:
    """The outcome of a process that ended before it had reported.

    Nobody but the kernel sends SIGKILL unasked, and it does so when memory runs out; but where it
    counts such kills and has counted none, somebody else did.
    """
    tail = f": {ending.said}" if ending.said else ""
    if ending.status >= 0:
        return Outcome.FAILED, f"its process ended early with exit status {ending.status}{tail}"
    number = -ending.status
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL and ending.out_of_memory_kills != 0:
        return Outcome.OUT_OF_MEMORY, "its process was killed, as the kernel does when memory runs out"
    if number == signal.SIGKILL:
        return (
            Outcome.FAILED,
            "its process was killed (SIGKILL), but not by the kernel for want of memory: something else ended it; "
            "measure it anew in a run of its own (-k)",
        )
    return Outcome.FAILED, f"its process died of {name}{tail}"


def _sentence(text: str) -> str:
    """The sentence that says it, without the place in torch before it and the advice after."""
    sentences = text.split(". ")
    return next((s for s in sentences if any(sign in s.lower() for sign in OUT_OF_MEMORY)), sentences[0])
