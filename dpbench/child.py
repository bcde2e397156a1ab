"""A child process as the one who started it sees it: messages, a deadline, an end."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from dpbench.job import Job, Message
from dpbench.outcome import Ending


class Child(Protocol):
    """A job at work."""

    def receive(self, timeout: float) -> Message | None:
        """The next message; None at the end of them. Raises TimeoutError if there is none in time."""
        ...

    def kill(self) -> None:
        """End it and everything that it started; harmless if it has ended."""
        ...

    def wait(self) -> Ending:
        """How it ended, once it has; the last to be called."""
        ...


class Launcher(Protocol):
    """Starts children, one at a time."""

    def start(self, job: Job) -> Child:
        """A child at work on ``job``."""
        ...


class Process:
    """A child that writes JSON lines into a pipe, so that its death is the end of the file."""

    def __init__(self, pid: int, reading: int, ending: Callable[[], Ending]) -> None:
        self.pid, self._reading, self._ending = pid, reading, ending
        self._buffer = b""
        self._ended: Ending | None = None

    def receive(self, timeout: float) -> Message | None:
        """The next message; a line that death cut off is none."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not select.select([self._reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            if not (more := os.read(self._reading, 65536)):
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def kill(self) -> None:
        """Kill its process group; it leads one of its own, or is just about to."""
        if self._ended is None:
            for send, target in ((os.killpg, self.pid), (os.kill, self.pid)):
                with suppress(ProcessLookupError, PermissionError):
                    send(target, signal.SIGKILL)

    def wait(self) -> Ending:
        """How it ended."""
        if self._ended is None:
            self._ended = self._ending()
            os.close(self._reading)
        return self._ended
