"""Two runs that go on with one file at once."""

from __future__ import annotations

import random
from pathlib import Path
from signal import SIGKILL

from tests.faults.judged import Struck, after
from tests.faults.run import Run, send

FAULT = "two runs into one file"


def strike(place: Path, draw: random.Random) -> Struck:
    struck, run = Struck(), Run(place)
    run.wait_for(run.file)
    run.for_a_while(draw, 2.0)
    send(run.process, SIGKILL)
    run.end()
    path = run.file()
    assert path is not None
    first = Run(place, resume=path)
    first.for_a_while(draw, 1.0)
    second = Run(place, resume=path)
    ends = [r.end() for r in (first, second)]
    struck.seconds, struck.left = max(e[1] for e in ends), sum(e[2] for e in ends)
    refused = [r for r, e in zip((first, second), ends, strict=True) if e[0] == 2]
    struck.expect(sorted(e[0] for e in ends) in ([0, 0], [0, 2]), f"exits {[e[0] for e in ends]}")
    struck.expect(all(f"another run holds {path}" in r.said for r in refused), "refused without a reason")
    after(path, struck, lambda record: False)
    return struck
