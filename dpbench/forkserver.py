"""The fork server: a process that has torch loaded and forks each worker in a few milliseconds.

It never touches CUDA and starts no threads, both of which a fork would break. It is started as
``python -m dpbench.forkserver FD PARENT``, with a socket FD over which :mod:`dpbench.children` sends one
job at a time and two file descriptors with it: where messages go, and where the worker's output goes.
The server answers with the worker's process number and, at its end, with its wait status. Where forking
is not safe (macOS) it runs one job itself and ends.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

from dpbench import confine

FORKS = sys.platform == "linux"
MAX_JOB = 1 << 20
"""Bytes of the longest job."""


def main(descriptor: int, parent: int) -> None:
    """Serve until the other end hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confine.die_with_parent(parent)
    control = socket.socket(fileno=descriptor)
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, MAX_JOB, 2)
        if not text:
            return
        job = json.loads(text)
        for module in job.pop("modules", ()):
            _load(module)
        messages, output = descriptors
        if not FORKS:
            control.send(json.dumps({"pid": os.getpid()}).encode())
            control.close()
            os.setpgid(0, 0)
            _work(job, messages, output, threads)
        pid = os.fork()
        if pid == 0:
            control.close()
            _become_worker(job, os.getppid())
            _work(job, messages, output, threads)
        os.close(messages)
        os.close(output)
        control.send(json.dumps({"pid": pid}).encode())
        _, status = os.waitpid(pid, 0)
        control.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())


def _load(module: str) -> None:
    """Load what the jobs will need; whoever needs it and has it not says so there."""
    try:
        importlib.import_module(module)
    except Exception:
        return


def _become_worker(job: dict[str, Any], server: int) -> None:
    os.setpgid(0, 0)
    confine.die_with_parent(server)
    confine.die_first()
    if (limit := job.get("memory_limit")) is not None:
        confine.limit_memory(limit)


def _work(job: dict[str, Any], messages: int, output: int, threads: int) -> None:
    """Run the job and end the process, without the clean-up of a process that it is a copy of."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 1
    try:
        from dpbench.worker import work

        work(job, messages, threads)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
