"""How a child says who is at work, so that whatever ends it is laid at the right door."""

from __future__ import annotations

from typing import Any

from dpbench.faults import of_machine, ran_out_of_memory
from dpbench.job import Send
from dpbench.outcome import of_exception


class Telling:
    """Says who is at work, and what became of it if it raises; the exception ends there."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send, self.failed = name, send, False
        self.broken = False
        """Whether the device is of no use any more: the others are not to be blamed, and go on in another process."""

    def __enter__(self) -> Telling:
        self._send({"event": "started", "implementation": self._name})
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failed = True
        self.broken = of_machine(error) and not ran_out_of_memory(error)
        outcome, reason = of_exception(error)
        self._send({"event": "ended", "implementation": self._name, "outcome": outcome, "reason": reason})
        return True
