"""Fresh processes in milliseconds: one process imports torch once, and every child is forked from it.

The server never computes, never initialises CUDA and starts no thread, so that what is forked is as
good as new. It is told what its children had to import, and imports that itself before the next.
Where a process cannot be forked safely (macOS), every child is a new Python.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType

from dpbench import contain
from dpbench.child import Process
from dpbench.errors import DpbenchError
from dpbench.job import Job, Message, Talk, from_json
from dpbench.outcome import Ending

WORK = "dpbench.worker:work"
CAN_FORK = sys.platform == "linux"
Work = Callable[[Job, Talk], None]
"""``work(job, send)``: does the job and tells of it."""
Status = Callable[[float | None], int]
"""``status(timeout)``: that of a child, once it has ended; raises TimeoutError, but not with None."""
_TAIL = 400
"""Characters of what a child wrote to stderr that are kept as a reason."""
STARTS_S = 60.0
"""Seconds in which the server has forked, with what it imports for that; else it is stuck."""
ENDS_S = 10.0
"""Seconds in which a child that was killed is gone."""
ASKED_S = 2.0
"""Seconds in which the server ends when it is asked to; else it is stopped, and is killed."""
_LONGEST = 1 << 20
_HERE_LAST = "import sys; sys.path.append('')"


class ForkServer:
    """Starts children; use it in ``with``. What they do is the function ``work``, ``module:name``.

    ``environment`` is added to that of this process: another ``PYTHONPATH`` has them run other source.
    """

    def __init__(self, *, work: str = WORK, fork: bool = CAN_FORK, environment: Mapping[str, str] = {}) -> None:
        self._work, self._fork, self._environment = work, fork, environment
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
        ours, theirs = socket.socketpair()
        try:
            order = {"job": job.to_json(), "limit": limit, "imports": self._imports}
            starting = self._fork_one if self._fork else self._spawn_one
            pid, status = starting(json.dumps(order).encode(), theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

        def ending(timeout: float | None) -> Ending:
            code = status(timeout)
            now = contain.out_of_memory_kills()
            return Ending(code, self._said(), None if kills is None or now is None else now - kills)

        self._child = Process(pid, ours, ending)
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
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
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
                f"{_HERE_LAST}; from dpbench.forkserver import main; {call}",
            ],
            stdin=stdin,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(descriptor,),
            start_new_session=True,
            # The threads that NumPy's OpenBLAS starts when it is imported would not survive a fork.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ, **self._environment},
        )

    def _fork_one(self, order: bytes, line: int) -> tuple[int, Status]:
        if (pid := self._forked(order, line)) is None:
            # It was killed, or is stopped.
            self._launch()
            pid = self._forked(order, line)
        if pid is None:
            raise DpbenchError(
                f"the process that starts workers could not, twice: {self._said() or 'it said nothing'}; "
                "what is in the results file is safe: go on with --resume"
            )
        self._imports = []

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

    def _forked(self, order: bytes, line: int) -> int | None:
        """The process id of a new child; None if the server did not answer."""
        if self._control is None:
            return None
        try:
            socket.send_fds(self._control, [order], [line])
            return int(self._answer(STARTS_S)) or None
        except (OSError, ValueError):
            return None

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


def main(what: str, work: str, descriptor: int, parent: int) -> None:
    """Be the server, or where there is none a single worker."""
    if what == "serve":
        # Asked to end, not killed, so that it ends its child, too, and what that has started.
        signal.signal(signal.SIGTERM, _end_all)
        contain.adopt_orphans()
    contain.die_with(parent, signal.SIGTERM if what == "serve" else signal.SIGKILL)
    module, _, name = work.partition(":")
    function: Work = getattr(importlib.import_module(module), name)
    if what == "serve":
        serve(socket.socket(fileno=descriptor), function)
    else:
        order = json.loads(sys.stdin.buffer.read())
        _work(function, from_json(order["job"]), order["limit"], descriptor)


def serve(control: socket.socket, work: Work) -> None:
    """Fork a child for every order that comes in, one at a time, and tell its pid and then its status."""
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, _LONGEST, 1)
        if not order:
            return
        asked = json.loads(order)
        for name in asked["imports"]:
            with suppress(Exception):
                importlib.import_module(name)
        gc.collect()
        gc.freeze()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            contain.die_with(parent)
            contain.be_first_to_be_killed()
            _work(work, from_json(asked["job"]), asked["limit"], descriptors[0])
        os.close(descriptors[0])
        control.send(str(pid).encode())
        status = os.waitpid(pid, 0)[1]
        contain.end_children()
        control.send(str(status).encode())


def _end_all(number: int, frame: object) -> None:
    contain.end_children()
    os._exit(1)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _work(work: Work, job: Job, limit: int, descriptor: int) -> None:
    """Work in this process, write what is told to ``descriptor``, and end it."""
    if job.workload.device == "cpu":
        contain.limit_memory(limit)
    contain.limit_files()
    status = 1
    try:
        work(job, _Line(descriptor))
        status = 0
    except BaseException:
        with suppress(Exception):
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            # It may be closed, or the disk be full.
            with suppress(Exception):
                stream.flush()
        # Not sys.exit: what the server had to do at its exit is no business of a child.
        os._exit(status)


class _Line:
    """The child's end: it tells in lines of JSON, and hears words."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._words = self._socket.makefile("r")

    def __call__(self, message: Message) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> str:
        return self._words.readline().strip()
