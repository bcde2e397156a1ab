"""The other side of a fork server: the process that forks workers, and each of them until it is at work.

The server never computes, never initialises CUDA and starts no thread, so that what is forked is as good as new.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from dpbench import contain
from dpbench.job import Job, Message, Talk, from_json

LONGEST = 1 << 20
"""Bytes of an order."""
Work = Callable[[Job, Talk], None]
"""``work(job, send)``: does the job and tells of it."""


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
        order, descriptors, _, _ = socket.recv_fds(control, LONGEST, 1)
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
