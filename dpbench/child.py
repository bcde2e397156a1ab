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
from dpbench.told import Garbled

LONGEST = 1 << 24
"""Bytes of a message, at most."""


class Child(Protocol):
    """A job at work."""

    def receive(self, timeout: float) -> Message | None:
        """The next message; None at the end of them, when it has ended.

        Raises:
            TimeoutError: neither came in time.
            Garbled: something came that is no message.
        """
        ...

    def tell(self, word: str) -> None:
        """Say something to it; harmless if it has ended."""
        ...

    def kill(self) -> None:
        """End it and everything that it started; harmless if it has ended."""
        ...

    def wait(self) -> Ending:
        """How it ended; the last to be called, after the end of its messages or :meth:`kill`."""
        ...


class Launcher(Protocol):
    """Starts children, one at a time."""

    def start(self, job: Job) -> Child:
        """A child at work on ``job``."""
        ...


class Process:
    """A child that writes JSON lines into a socket, so that its death is the end of them."""

    def __init__(self, pid: int, line: socket.socket, ending: Callable[[float | None], Ending]) -> None:
        """``ending(timeout)`` tells how it ended, or raises TimeoutError; with None it tells in any case."""
        self.pid, self._line, self._ending = pid, line, ending
        self._buffer = bytearray()
        self._ended: Ending | None = None

    def receive(self, timeout: float) -> Message | None:
        """The next message; a line that death cut off is none."""
        deadline = time.monotonic() + timeout
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LONGEST:
                raise Garbled(f"a line of more than {LONGEST} bytes")
            if not select.select([self._line], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            try:
                more = self._line.recv(1 << 16)
            except ConnectionError:
                # It died before it had read what it was told.
                more = b""
            if not more:
                # Who has only closed its line may live on for ever.
                self._ended = self._ending(max(0.0, deadline - time.monotonic()))
                return None
            self._buffer += more
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return _message(line)

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
            self._ended = self._ending(None)
        self._line.close()
        return self._ended


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line)
        # A half of a surrogate pair could be neither printed nor written.
        json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Garbled(f"no JSON: {line!r:.80}") from None
    if not isinstance(message, dict):
        raise Garbled(f"no message: {line!r:.80}")
    return message
