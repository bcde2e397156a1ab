"""A results file cut at a byte: whole records are read, and a run that goes on completes it; or it is refused."""

from __future__ import annotations

import random
import time
from pathlib import Path

from dpbench import store
from dpbench.errors import DpbenchError
from dpbench.results import NotBegun
from tests.faults.judged import Struck
from tests.records_for_tests import ENVIRONMENT, record, write

FAULT = "a results file cut at a byte"
PASSES = 1
"""Nothing is drawn."""
RECORDS = [record(name) for name in ("nonprivate", "bk")]
RESUMED = 16
"""Of so many cuts, and at every end of a line, one is gone on from: each record is forced to the disk."""


def strike(place: Path, draw: random.Random, every: int = 1) -> Struck:
    """At every byte, or at each so many from one that is drawn."""
    struck = Struck(times=0)
    path = write(place, RECORDS)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    since = time.monotonic()
    for at in range(draw.randrange(every), len(content) + 1, every):
        struck.times += 1
        path.write_bytes(content[:at])
        whole = sum(end <= at for end in ends) - 1
        try:
            found = store.read(path)
        except DpbenchError as error:
            struck.expect(
                whole < 0 and isinstance(error, NotBegun) and f"{path} " in str(error), f"cut at {at}: {error}"
            )
            continue
        struck.lost += max(0, whole - len(found.records))
        struck.wrong += found.records != tuple(RECORDS[: len(found.records)])
        struck.expect(bool(found.torn) == (at not in ends), f"cut at {at}: torn is {found.torn!r}")
        if at % RESUMED and not {at, at - 1, at + 1} & {*ends}:
            continue
        cells = [r.cell for r in RECORDS]
        with store.open_for_resume(path, cells, ENVIRONMENT, {}, lambda text: None) as writer:
            for made in RECORDS:
                if made.cell not in writer.done:
                    writer.append(made)
        struck.expect(path.read_bytes() == content, f"cut at {at}: completed, it is another")
    struck.seconds = time.monotonic() - since
    path.unlink()
    return struck
