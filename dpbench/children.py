"""The runner's side of the fork server: start a worker, hear its messages, see how it ended."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.forkserver import FORKS, MAX_JOB

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended."""

    status: int
    """Exit code, or minus the number of the signal."""
    timed_out: bool = False
    output: str = ""
    """The end of what it printed."""


class Children:
    """A fork server and the workers that are forked from it, one at a time. Use it in ``with``."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = list(modules)
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def __enter__(self) -> Children:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def run(self, job: Mapping[str, Any], allowance: Callable[[], float]) -> Iterator[Message | Ending]:
        """Run one job: its messages as they come, and its :class:`Ending` last.

        ``allowance()`` is asked before each wait for the seconds that the worker may stay silent;
        then it is killed with all its children. It is killed, too, if the caller stops listening.
        """
        with tempfile.TemporaryFile() as output:
            reader, writer = os.pipe()
            try:
                pid = self._send(job, writer, output.fileno())
            finally:
                os.close(writer)
            ended = False
            try:
                with os.fdopen(reader, "rb", buffering=0) as pipe:
                    timed_out = yield from _listen(pipe.fileno(), allowance)
                if timed_out:
                    _kill(pid)
                status = self._status()
                ended = True
                yield Ending(status, timed_out, _tail(output.fileno()))
            finally:
                if not ended:
                    _kill(pid)
                    self._status()

    def _start(self) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        command = [sys.executable, "-m", "dpbench.forkserver", str(there.fileno()), str(os.getpid())]
        # OpenBLAS, which numpy brings, would start threads when it is imported.
        environment = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **os.environ}
        self._server = subprocess.Popen(
            command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=environment, stdout=sys.stderr
        )
        there.close()
        self._control = here

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            try:
                self._server.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None

    def _send(self, job: Mapping[str, Any], messages: int, output: int) -> int:
        """Have the job started; the worker's process number."""
        text = json.dumps({**job, "modules": self._modules}).encode()
        assert len(text) < MAX_JOB
        if self._server is None or self._server.poll() is not None:
            self._stop()
            self._start()
        assert self._control is not None
        with suppress(OSError):
            socket.send_fds(self._control, [text], [messages, output])
            if answer := self._control.recv(64):
                return int(json.loads(answer)["pid"])
        raise DpbenchError(
            "the fork server did not start; see above what it said. Try: python -c 'import torch, dpbench.worker'"
        )

    def _status(self) -> int:
        assert self._control is not None
        assert self._server is not None
        if not FORKS:
            return self._server.wait()
        answer = self._control.recv(64)
        if answer:
            return int(json.loads(answer)["status"])
        self._server.wait()
        return -signal.SIGKILL


def _listen(descriptor: int, allowance: Callable[[], float]) -> Iterator[Message]:
    """The messages of a worker until it hangs up; returns True if it was silent for too long."""
    rest = b""
    while True:
        deadline = time.monotonic() + max(allowance(), 0.0)
        while not select.select([descriptor], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            if time.monotonic() >= deadline:
                return True
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return False
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _tail(descriptor: int, length: int = 4000) -> str:
    size = os.fstat(descriptor).st_size
    start = max(size - length, 0)
    return os.pread(descriptor, length, start).decode(errors="replace").strip()
