"""SIGSTOP of a worker at a random moment; its time out ends it."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from dpbench.records import Outcome, Record
from tests.faults.judged import Struck, hit_a_worker
from tests.faults.run import Run

FAULT = "SIGSTOP of a worker"
TIMEOUT = 8


def strike(place: Path, draw: random.Random) -> Struck:
    return stopped(Run(place, ["--timeout", str(TIMEOUT)]), draw)


def stopped(run: Run, draw: random.Random, server: bool = False) -> Struck:
    """Stop a worker, or what forks them."""
    return hit_a_worker(run, draw, signal.SIGSTOP, server, says_so)


def says_so(record: Record) -> bool:
    return record.outcome is Outcome.TIMED_OUT and f"longer than {TIMEOUT} s" in record.reason
