"""A results file of which one byte is another: refused with the line, or read as it was, but for what is torn."""

from __future__ import annotations

import random
import time
from pathlib import Path

from dpbench import store
from dpbench.errors import DpbenchError
from tests.faults.file_cut import RECORDS
from tests.faults.judged import Struck
from tests.records_for_tests import write

FAULT = "a results file with one byte changed"
PASSES = 3
"""Over all of its bytes."""


def strike(place: Path, draw: random.Random, every: int = 1) -> Struck:
    """Each byte is changed to another, or each so many-th from one that is drawn."""
    struck = Struck(times=0)
    path = write(place, RECORDS)
    content = path.read_bytes()
    header = store.read(path).header
    since = time.monotonic()
    for at in range(draw.randrange(every), len(content), every):
        other = draw.choice([b for b in (draw.randrange(256), content[at] ^ 1, ord("7"), 10, 0) if b != content[at]])
        struck.times += 1
        path.write_bytes(content[:at] + bytes([other]) + content[at + 1 :])
        line = content[:at].count(b"\n") + 1
        try:
            found = store.read(path)
        except DpbenchError as error:
            struck.expect(f"{path}, line {line}:" in str(error), f"byte {at}, line {line}: {error}")
            continue
        struck.wrong += found.header != header or found.records != tuple(RECORDS[: len(found.records)])
        struck.lost += len(found.records) < len(RECORDS) and not found.torn
        # What is cut off on going on is the line that is torn, and no other.
        struck.lost += max(0, len(RECORDS) - 1 - len(found.records))
    struck.seconds = time.monotonic() - since
    path.unlink()
    return struck
