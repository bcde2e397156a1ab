"""kill -9 of the parent at a random moment."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from tests.faults.judged import Struck, judge
from tests.faults.run import Run, send

FAULT = "kill -9 of the parent"


def strike(place: Path, draw: random.Random) -> Struck:
    struck, run = Struck(), Run(place, ["--json"])
    run.moment(draw)
    send(run.process, signal.SIGKILL)
    status, struck.seconds, struck.left = run.end()
    struck.expect(status in (-signal.SIGKILL, 0), f"exit {status}")
    judge(run, struck)
    return struck
