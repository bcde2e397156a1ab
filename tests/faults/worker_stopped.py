"""SIGSTOP of a worker at a random moment; its time out ends it."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from dpbench.records import Outcome, Record
from tests.faults.judged import Struck, after
from tests.faults.run import Run, send

FAULT = "SIGSTOP of a worker"
TIMEOUT = 8


def strike(place: Path, draw: random.Random) -> Struck:
    return stopped(Run(place, ["--timeout", str(TIMEOUT)]), draw)


def stopped(run: Run, draw: random.Random, server: bool = False) -> Struck:
    """Stop a worker, or what forks them."""
    struck = Struck()
    worker = run.moment_of_a_worker(draw)
    send(run.server() if server else worker, signal.SIGSTOP)
    status, struck.seconds, struck.left = run.end()
    struck.expect(status in (0, 3), f"exit {status}: {run.said[-300:]}")
    path = run.file()
    assert path is not None
    after(path, struck, says_so)
    return struck


def says_so(record: Record) -> bool:
    return record.outcome is Outcome.TIMED_OUT and f"longer than {TIMEOUT} s" in record.reason
