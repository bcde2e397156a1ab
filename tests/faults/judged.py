"""What a fault came to, held against what is right; the figures are arithmetic or those of the definition."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from dpbench.errors import DpbenchError
from dpbench.records import Cell, Outcome, Record, Workload, from_json
from dpbench.results import read
from tests.faults.run import BATCHES, MODEL, NAMES, Run, files_in, send

PARAMETERS = 2 * (8 * 8 + 8)
CELLS = [Cell(name, Workload(model=MODEL, batch=batch)) for batch in BATCHES for name in NAMES]


@dataclass
class Struck:
    """What came of a fault: how much of each of what must not be, and what else was not as it should be."""

    lost: int = 0
    """Cells that were told to be finished and are not in the file, or are other there after going on."""
    wrong: int = 0
    """Figures that are not right."""
    left: int = 0
    """Processes."""
    seconds: float = 0.0
    """From the fault to the end of the last process."""
    odd: list[str] = field(default_factory=list)
    times: int = 1

    def expect(self, holds: object, said: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.odd.append(said)


def wrong(record: Record) -> str:
    """What of a record is not right; empty if all is. One that is not ok has to say why and has no timings."""
    batch = record.cell.workload.physical
    if record.outcome is not Outcome.OK:
        return "" if record.reason and "step_seconds" not in record.metrics else "an outcome without a reason"
    samples = record.metrics["step_seconds"].samples
    # Weights and inputs are float32, labels int64.
    resident = 4 * PARAMETERS + batch * 8 * 4 + batch * 8
    holds = {
        "cell": replace(record.cell, workload=replace(record.cell.workload, threads=None)) in CELLS,
        "parity": record.parity and record.parity.passed and record.parity.error < 1e-12,
        "coverage": record.coverage and record.coverage.trained == record.coverage.asked == PARAMETERS,
        "resident": record.metrics["resident"].samples == ((resident,),),
        "rounds": len(samples) == len(record.rounds) == 2,
        "seconds": all(0 < s < 1 and isfinite(s) for r in samples for s in r),
        "facts": record.facts["parameters"] == PARAMETERS,
    }
    return ", ".join(name for name, right in holds.items() if not right)


def finished(run: Run) -> list[Record]:
    """The cells that a run with ``--json`` has told, whole lines alone."""
    lines = run.said.split("\n")[:-1]
    return [from_json(line) for line in lines if line.startswith('{"cell"')]


def judge(run: Run, struck: Struck, bad: Callable[[Record], bool] = lambda record: False) -> Path | None:
    """Hold the file of a run that was broken off against what it told, and go on with it until it is whole.

    ``bad``: records that may be other than ok.
    """
    told, path = finished(run), run.file()
    struck.expect(not list(files_in(run.temporary)), f"files left in TMPDIR: {list(files_in(run.temporary))}")
    if path is None or path.stat().st_size == 0:
        struck.lost += len(told)
        return None
    before = read(path)
    struck.lost += sum(record not in before.records for record in told)
    kept = path.read_bytes()[: before.whole_bytes]
    status, _, left = (again := Run(run.place, ["--json"], resume=path)).end()
    struck.left += left
    struck.expect(status in (0, 3), f"--resume: exit {status}: {again.said[-300:]}")
    struck.lost += not path.read_bytes().startswith(kept)
    after(path, struck, bad)
    return path


def after(path: Path, struck: Struck, bad: Callable[[Record], bool], cells: Collection[Cell] = CELLS) -> None:
    """Every cell is there once, and right or rightly bad."""
    try:
        found = read(path)
    except DpbenchError as error:
        struck.lost += len(cells)
        struck.odd.append(str(error))
        return
    struck.lost += len(set(cells) - {r.cell for r in found.records})
    struck.expect(not found.missing and not found.torn, f"not whole: {found.torn or len(found.missing)}")
    for record in found.records:
        if record.outcome is not Outcome.OK and not bad(record):
            struck.odd.append(f"{record.cell.implementation} is {record.outcome}: {record.reason}")
        elif said := wrong(record):
            struck.wrong += 1
            struck.odd.append(f"{record.cell.implementation}: {said}: {record.reason[:200]}")


def hit_a_worker(
    run: Run, draw: random.Random, number: signal.Signals, server: bool, says_so: Callable[[Record], bool]
) -> Struck:
    """Send a signal to a worker at a random moment, or to what forks them, and judge what comes of the run."""
    struck = Struck()
    worker = run.moment_of_a_worker(draw)
    send(run.server() if server else worker, number)
    status, struck.seconds, struck.left = run.end()
    struck.expect(status in (0, 3), f"exit {status}: {run.said[-300:]}")
    path = run.file()
    assert path is not None
    after(path, struck, says_so)
    return struck
