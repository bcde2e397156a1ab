"""A worker that allocates and touches memory without end; the machine's is held by a ulimit, so that others live."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import psutil

from dpbench.records import Outcome, Record
from tests.faults.judged import Struck, after
from tests.faults.run import Run
from tests.faults.worker_rubbish import CODE

FAULT = "a worker that allocates without end"
MOST = 3 << 30
"""Bytes."""
BACK = 2 << 30
"""Bytes by which what is available may differ before and after: others may be at work on the machine."""
WAYS = (
    "held = []\n            while True: held.append(bytearray(b'x' * (1 << 24)))",
    "import torch; held = [torch.ones(1 << 22)]\n            while True: held.append(held[-1] + 1)",
    "import torch; held = torch.ones(1 << 22)\n            while True: held = torch.cat([held, held])",
)


def strike(place: Path, draw: random.Random) -> Struck:
    struck = Struck()
    path = place / "hungry.py"
    path.write_text(CODE.replace("LATE", str(draw.random() < 0.5)).replace("DO", draw.choice(WAYS)))
    before = psutil.virtual_memory().available
    run = Run(place, also=[path], before=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST)))
    status, struck.seconds, struck.left = run.end()
    struck.expect(status == 0, f"exit {status}: {run.said[-500:]}")
    back = until_back(before - BACK)
    struck.expect(back >= before - BACK, f"{before - back:,} bytes are not back")
    found = run.file()
    assert found is not None

    def hungry(record: Record) -> bool:
        return record.cell.implementation == str(path) and record.outcome is Outcome.OUT_OF_MEMORY

    after(found, struck, hungry)
    return struck


def until_back(least: int) -> int:
    """What is available, once that is enough, or after half a minute."""
    until = time.monotonic() + 30
    while (now := int(psutil.virtual_memory().available)) < least and time.monotonic() < until:
        time.sleep(0.2)
    return now
