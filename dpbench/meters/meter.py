"""What a meter is: it runs a step and says how long it took and how much memory it needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

Action = Callable[[], object]


class Sample(NamedTuple):
    """One timing."""

    at: float
    """When it began, in seconds since the epoch."""
    seconds: float


class Meter(Protocol):
    """One device's way of measuring."""

    def time(self, action: Action) -> None:
        """Run and time it; nothing is waited for beyond the action itself."""
        ...

    def samples(self) -> list[Sample]:
        """The times of all actions since the last call, in order; waits for the device once."""
        ...

    def memory(self, action: Action) -> dict[str, float]:
        """Run it and give its memory in bytes, by the name of the metric."""
        ...
