"""Fresh processes in milliseconds: one process imports torch once, and every child is forked from it.

It is told what its children had to import, and imports that itself before the next. One that is killed, or
stopped, is replaced. Where a process cannot be forked safely (macOS), every child is a new Python.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from dpbench import contain
from dpbench.child import Process
from dpbench.errors import DpbenchError
from dpbench.forking import LONGEST
from dpbench.job import Job
from dpbench.outcome import Ending

WORK = "dpbench.worker:work"
CAN_FORK = sys.platform == "linux"
Status = Callable[[float | None], int]
"""``status(timeout)``: that of a child, once it has ended; raises TimeoutError, but not with None."""
_TAIL = 400
"""Characters of what a child wrote to stderr that are kept as a reason."""
STARTS_S = 120.0
"""Seconds in which the server has forked, with what it imports for that; else it is stuck."""
ENDS_S = 10.0
"""Seconds in which a child that was killed is gone."""
ASKED_S = 2.0
"""Seconds in which the server ends when it is asked to; else it is stopped, and is killed."""
_HERE_LAST = "import sys; sys.path.append('')"


class ForkServer:
    """Starts children; use it in ``with``. What they do is the function ``work``, ``module:name``.

    ``directory`` and ``environment`` are those that they run in, the latter added to ours: another ``PYTHONPATH``
    has them run other source.
    """

    def __init__(
        self,
        *,
        work: str = WORK,
        fork: bool = CAN_FORK,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._work, self._fork = work, fork
        self._directory, self._environment = directory, environment or {}
        self._imports: list[str] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._child: Process | None = None

    def __enter__(self) -> ForkServer:
        if self._fork:
            self._launch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the server; None where every child is a new Python."""
        return None if self._server is None else self._server.pid

    def start(self, job: Job) -> Process:
        """A child at work on ``job``; the one before has to have ended."""
        kills = contain.out_of_memory_kills()
        # What the one before said has been read.
        self._log.seek(0)
        self._log.truncate()
        limit = job.memory_limit or contain.available_memory()
        order = json.dumps({"job": job.to_json(), "limit": limit, "imports": self._imports}).encode()
        begun = self._begun(order)
        if begun is None:
            # The server was killed, or is stopped.
            self._launch()
            begun = self._begun(order)
        if begun is None:
            raise DpbenchError(
                f"the process that starts workers could not, twice: {self._said() or 'it said nothing'}. "
                "What is in a results file is safe; go on with --resume"
            )
        self._imports = []
        pid, line, status = begun

        def ending(timeout: float | None) -> Ending:
            code = status(timeout)
            now = contain.out_of_memory_kills()
            return Ending(code, self._said(), None if kills is None or now is None else now - kills)

        self._child = Process(pid, line, ending)
        return self._child

    def remember(self, imports: list[str]) -> None:
        """Have the server import these before it forks again."""
        self._imports = imports

    def close(self) -> None:
        """End the server and whatever child there is."""
        if self._child is not None:
            self._child.kill()
        self._end_server()
        self._log.close()

    def _end_server(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.terminate()
            try:
                self._server.wait(ASKED_S)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None

    def _launch(self) -> None:
        self._end_server()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        self._server = self._python("serve", theirs.fileno(), subprocess.DEVNULL)
        theirs.close()
        self._control = ours

    def _python(self, what: str, descriptor: int, stdin: int) -> subprocess.Popen[bytes]:
        """A Python of our own version at work in :func:`main`, in a session of its own so that Ctrl-C is ours alone."""
        call = f"main({what!r}, {self._work!r}, {descriptor}, {os.getpid()})"
        return subprocess.Popen(
            # The folder that it is started in comes last: a random.py there is not the standard library's.
            [
                sys.executable,
                "-P",
                "-c",
                f"{_HERE_LAST}; from dpbench.forking import main; {call}",
            ],
            stdin=stdin,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(descriptor,),
            start_new_session=True,
            cwd=self._directory,
            # The threads that NumPy's OpenBLAS starts when it is imported would not survive a fork. Nor would
            # CUDA's driver, which a library that asks torch whether there is a GPU when it is imported starts.
            env={"OPENBLAS_NUM_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", **os.environ, **self._environment},
        )

    def _begun(self, order: bytes) -> tuple[int, socket.socket, Status] | None:
        """A child, its line and how it ends; None if the server did not answer."""
        ours, theirs = socket.socketpair()
        begun = None
        try:
            begun = (self._fork_one if self._fork else self._spawn_one)(order, theirs.fileno())
        finally:
            theirs.close()
            if begun is None:
                # Another may be at work for all that; nobody hears it.
                ours.close()
        return begun and (begun[0], ours, begun[1])

    def _fork_one(self, order: bytes, line: int) -> tuple[int, Status] | None:
        if self._control is None:
            return None
        try:
            socket.send_fds(self._control, [order], [line])
            pid = int(self._answer(STARTS_S))
        except (OSError, ValueError):
            return None

        def status(timeout: float | None) -> int:
            try:
                said = self._answer(ENDS_S if timeout is None else timeout)
            except TimeoutError:
                if timeout is not None:
                    raise
                said = b""
            if said:
                return os.waitstatus_to_exitcode(int(said))
            # The server is dead or stopped, and its child dies with it; not so what that child has started.
            self._end_server()
            _kill_group(pid)
            return -signal.SIGKILL

        return pid, status

    def _answer(self, timeout: float) -> bytes:
        """What the server says; nothing if it is dead. Raises TimeoutError."""
        if self._control is None:
            return b""
        if not select.select([self._control], [], [], timeout)[0]:
            raise TimeoutError
        try:
            return self._control.recv(64)
        except ConnectionError:
            return b""

    def _spawn_one(self, order: bytes, line: int) -> tuple[int, Status]:
        reading, ordering = os.pipe()
        child = self._python("work", line, reading)
        os.close(reading)
        with os.fdopen(ordering, "wb") as pipe:
            pipe.write(order)

        def status(timeout: float | None) -> int:
            try:
                code = child.wait(timeout)
            except subprocess.TimeoutExpired:
                raise TimeoutError from None
            _kill_group(child.pid)
            return code

        return child.pid, status

    def _said(self) -> str:
        """The last of what was written to stderr."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4 * _TAIL))
        text = " ".join(self._log.read(4 * _TAIL).decode(errors="replace").split())
        return text if len(text) <= _TAIL else "..." + text[-_TAIL:]


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
