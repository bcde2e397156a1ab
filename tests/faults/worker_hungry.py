"""A worker that allocates and touches memory without end; the machine's is held by a ulimit, so that others live."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import psutil

from dpbench.records import Outcome, Record
from tests.faults.judged import Struck, after
from tests.faults.run import Run
from tests.faults.worker_rubbish import CODE

FAULT = "a worker that allocates without end"
MOST = 3 << 30
"""Bytes."""
BACK = 1 << 30
"""Bytes by which what is available may differ before and after: others are at work on the machine."""
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
    back = psutil.virtual_memory().available - before
    struck.expect(back > -BACK, f"{-back:,} bytes are not back")
    found = run.file()
    assert found is not None

    def hungry(record: Record) -> bool:
        return record.cell.implementation == str(path) and record.outcome is Outcome.OUT_OF_MEMORY

    after(found, struck, hungry)
    return struck
