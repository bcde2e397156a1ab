"""No room behind stdout and stderr: the run goes on, into its file."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.judged import Struck, after
from tests.faults.run import Run

FAULT = "a full disk behind stdout and stderr"


def strike(place: Path, draw: random.Random) -> Struck:
    struck = Struck()
    with open("/dev/full", "wb") as full:
        run = Run(place, draw.choice([[], ["--json"]]), out=full)
        status, struck.seconds, struck.left = run.end()
    struck.expect(status == 0, f"exit {status}")
    path = run.file()
    assert path is not None
    after(path, struck, lambda record: False)
    return struck
