"""How a child says who is at work, so that whatever ends it is laid at the right door."""

from __future__ import annotations

from typing import Any

from dpbench.job import Send
from dpbench.outcome import of_exception


class Telling:
    """Says who is at work, and what became of it if it raises; the exception ends there."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send, self.failed = name, send, False

    def __enter__(self) -> Telling:
        self._send({"event": "started", "implementation": self._name})
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failed = True
        outcome, reason = of_exception(error)
        self._send({"event": "ended", "implementation": self._name, "outcome": outcome, "reason": reason})
        return True
