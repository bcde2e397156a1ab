"""Ctrl-C, SIGTERM or SIGHUP at a random moment, once or twice."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.faults.judged import Struck, judge
from tests.faults.run import Run, send

FAULT = "Ctrl-C, SIGTERM, SIGHUP"


def strike(place: Path, draw: random.Random) -> Struck:
    struck, run = Struck(), Run(place)
    number = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    # Before the command has read its options there is nothing to tidy up, and the signal does what it always does.
    begun = run.moment(draw) and run.file() is not None
    for _ in range(draw.choice([1, 2])):
        send(run.process, number)
        time.sleep(draw.uniform(0, 0.05))
    status, struck.seconds, struck.left = run.end()
    told_all = "next     dpbench show" in run.said
    if begun and told_all:
        # All is done and said; what comes after is Python's own end.
        struck.expect(status in (130, 0, -number), f"exit {status} of {number.name}: {run.said[-500:]}")
    elif begun:
        struck.expect(status in (130, 0), f"exit {status} of {number.name}: {run.said[-500:]}")
        struck.expect(status == 0 or "go on with: dpbench run --resume" in run.said, f"no way on: {run.said[-300:]}")
    else:
        # 0: what a signal raises is dropped where it falls into a destructor, of which importing has many.
        struck.expect(status in (130, -number, 0), f"exit {status} of {number.name}: {run.said[-500:]}")
    judge(run, struck)
    return struck
