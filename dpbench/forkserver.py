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
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
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
_TAIL = 400
"""Characters of what a child wrote to stderr that are kept as a reason."""
_LONGEST = 1 << 20
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
        kills, offset = contain.out_of_memory_kills(), self._log.seek(0, os.SEEK_END)
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

        def ending() -> Ending:
            code = status()
            now = contain.out_of_memory_kills()
            return Ending(code, self._said(offset), None if kills is None or now is None else now - kills)

        self._child = Process(pid, ours, ending)
        return self._child

    def remember(self, imports: list[str]) -> None:
        """Have the server import these before it forks again."""
        self._imports = imports

    def close(self) -> None:
        """End the server and whatever child there is."""
        if self._child is not None:
            self._child.kill()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
        self._log.close()

    def _launch(self) -> None:
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
            cwd=self._directory,
            # The threads that NumPy's OpenBLAS starts when it is imported would not survive a fork. Nor would
            # CUDA's driver, which a library that asks torch whether there is a GPU when it is imported starts.
            env={"OPENBLAS_NUM_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", **os.environ, **self._environment},
        )

    def _fork_one(self, order: bytes, line: int) -> tuple[int, Callable[[], int]]:
        if self._server is None or self._server.poll() is not None:
            self._launch()
        control = self._control
        assert control is not None
        socket.send_fds(control, [order], [line])
        self._imports = []
        if not (answer := control.recv(64)):
            raise DpbenchError(f"the process that starts workers could not: {self._said(0)}")

        def status() -> int:
            said = control.recv(64)
            return os.waitstatus_to_exitcode(int(said)) if said else -signal.SIGKILL

        return int(answer), status

    def _spawn_one(self, order: bytes, line: int) -> tuple[int, Callable[[], int]]:
        reading, ordering = os.pipe()
        child = self._python("work", line, reading)
        os.close(reading)
        with os.fdopen(ordering, "wb") as pipe:
            pipe.write(order)
        return child.pid, child.wait

    def _said(self, offset: int) -> str:
        """The last of what was written to stderr since ``offset``."""
        self._log.seek(offset)
        text = " ".join(self._log.read().decode(errors="replace").split())
        return text if len(text) <= _TAIL else "..." + text[-_TAIL:]


def main(what: str, work: str, descriptor: int, parent: int) -> None:
    """Be the server, or where there is none a single worker."""
    contain.die_with(parent)
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
            contain.die_with(parent)
            contain.be_first_to_be_killed()
            _work(work, from_json(asked["job"]), asked["limit"], descriptors[0])
        os.close(descriptors[0])
        control.send(str(pid).encode())
        control.send(str(os.waitpid(pid, 0)[1]).encode())


def _work(work: Work, job: Job, limit: int, descriptor: int) -> None:
    """Work in this process, write what is told to ``descriptor``, and end it."""
    if job.workload.device == "cpu":
        contain.limit_memory(limit)
    status = 1
    try:
        work(job, _Line(descriptor))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
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
