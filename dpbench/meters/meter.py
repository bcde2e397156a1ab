"""What a meter is: it runs a step and says how long it took and how much memory it needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Action = Callable[[], object]


class Meter(Protocol):
    """One device's way of measuring."""

    def time(self, action: Action) -> None:
        """Run and time it; nothing is waited for beyond the action itself."""
        ...

    def seconds(self) -> list[float]:
        """The times of all actions since the last call, in order; waits for the device once."""
        ...

    def memory(self, action: Action) -> dict[str, float]:
        """Run it and give its memory in bytes, by the name of the metric."""
        ...
