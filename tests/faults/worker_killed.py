"""kill -9 of a worker at a random moment."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from dpbench.records import Outcome, Record
from dpbench.results import read
from tests.faults.judged import Struck, hit_a_worker
from tests.faults.run import Run

FAULT = "kill -9 of a worker"


def strike(place: Path, draw: random.Random) -> Struck:
    return killed(Run(place), draw)


def killed(run: Run, draw: random.Random, server: bool = False) -> Struck:
    """Kill a worker, or what forks them; at most one cell may show it, in words."""
    struck = hit_a_worker(run, draw, signal.SIGKILL, server, says_so)
    path = run.file()
    assert path is not None
    ended = [r for r in read(path).records if r.outcome is not Outcome.OK]
    struck.expect(len(ended) <= 1, f"{len(ended)} cells are not ok")
    return struck


def says_so(record: Record) -> bool:
    return record.outcome is Outcome.FAILED and "its process was killed (SIGKILL)" in record.reason
