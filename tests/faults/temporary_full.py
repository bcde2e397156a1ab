"""No room for temporary files, which a worker prints into without end."""

from __future__ import annotations

import random
from pathlib import Path

from dpbench.records import Record
from tests.faults.disk_full import disk
from tests.faults.judged import Struck, after
from tests.faults.run import Run
from tests.faults.worker_rubbish import CODE, TIMEOUT

FAULT = "a full disk for temporary files"
SHOUT = "while True: os.write(1, b'x' * 65536)"


def strike(place: Path, draw: random.Random) -> Struck:
    struck = Struck()
    path = place / "loud.py"
    path.write_text(CODE.replace("LATE", str(draw.random() < 0.5)).replace("DO", SHOUT))
    with disk(place / "tmp", 1024):
        junk = place / "tmp" / "junk"
        junk.write_bytes(b"x" * draw.randrange(1 << 20))
        run = Run(place, ["--timeout", str(TIMEOUT)], also=[path], temporary=place / "tmp")
        status, struck.seconds, struck.left = run.end()
        struck.expect(status == 3, f"exit {status}: {run.said[-500:]}")
        found = run.file()
        assert found is not None

        def loud(record: Record) -> bool:
            return record.cell.implementation == str(path) and bool(record.reason)

        after(found, struck, loud)
    return struck
