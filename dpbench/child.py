"""A child process as the one who started it sees it: messages, a deadline, an end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
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

    def tell(self, word: str) -> None:
        """Say something to it; harmless if it has ended."""
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
    """A child that writes JSON lines into a socket, so that its death is the end of them."""

    def __init__(self, pid: int, line: socket.socket, ending: Callable[[], Ending]) -> None:
        self.pid, self._line, self._ending = pid, line, ending
        self._buffer = b""
        self._ended: Ending | None = None

    def receive(self, timeout: float) -> Message | None:
        """The next message; a line that death cut off is none."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not select.select([self._line], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            try:
                more = self._line.recv(65536)
            except ConnectionError:
                # It died before it had read what it was told.
                return None
            if not more:
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def tell(self, word: str) -> None:
        """Write a line."""
        with suppress(OSError):
            self._line.sendall(word.encode() + b"\n")

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
            self._line.close()
        return self._ended
