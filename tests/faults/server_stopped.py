"""SIGSTOP of the process that forks the workers, at a random moment."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.judged import Struck
from tests.faults.run import Run
from tests.faults.worker_stopped import TIMEOUT, stopped

FAULT = "SIGSTOP of the fork server"


def strike(place: Path, draw: random.Random) -> Struck:
    return stopped(Run(place, ["--timeout", str(TIMEOUT)]), draw, server=True)
