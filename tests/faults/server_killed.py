"""kill -9 of the process that forks the workers, at a random moment."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.judged import Struck
from tests.faults.run import Run
from tests.faults.worker_killed import killed

FAULT = "kill -9 of the fork server"


def strike(place: Path, draw: random.Random) -> Struck:
    return killed(Run(place), draw, server=True)
