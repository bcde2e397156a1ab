"""Two sides timed in turns: two implementations, or the same ones from two source trees.

Each side is checked, counted and weighed as in any run. Then in every round a process of each, and one more of the
base, are alive at once and take turns. What comes out slower or faster is timed once more before it counts.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpbench import store
from dpbench.child import Launcher
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.forkserver import ForkServer
from dpbench.interleaved import SEATS, PairedTiming
from dpbench.job import Job
from dpbench.records import MAX, Cell, Outcome, Record
from dpbench.runner import Event, Runner
from dpbench.selection import select as selected
from dpbench.sides import Side
from dpbench.slowdown import MIN_EFFECT
from dpbench.suite import Suite, group, spelled_out
from dpbench.supervise import Finding, Patience, supervise
from dpbench.sweep import check, names, settings_of

ROUNDS = 20
"""Where nothing else is asked for: they find a difference of 5 % among rounds that scatter by 4 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The first event: the files of both sides, and how many pairs of cells there are."""

    base: Path
    new: Path
    cells: tuple[tuple[Cell, Cell], ...]
    environment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one pair of cells."""

    base: Record
    new: Record


def pairs_of(suite: Suite, base: Side, new: Side, expression: str | None = None) -> list[tuple[Cell, Cell]]:
    """The cells of both sides, each beside its other.

    Raises:
        EmptySelection: there is none.
        DpbenchError: a side is no implementation, or the batch is ``max``.
    """
    for side in (base, new):
        if side.implementation is not None and spelled_out([side.implementation], names()) != [side.implementation]:
            raise DpbenchError(f"got {side.name}, expected one implementation: a name or a .py file")
    cells = suite.cells(names())
    if base.implementation is not None and new.implementation is not None:
        cells = [Cell(new.implementation, workload) for workload in group(cells)]
    if expression:
        cells = selected(cells, expression)
    if not cells:
        raise EmptySelection(f"{suite.name} has no cells; see: dpbench run {suite.name} --dry-run")
    if any(c.workload.batch == MAX for c in cells):
        raise DpbenchError("batch is 'max', expected a number: two sides are compared on the same batch")
    return [(Cell(base.implementation or cell.implementation, cell.workload), cell) for cell in cells]


def ab(
    suite: Suite,
    base: Side,
    new: Side,
    cells: Sequence[tuple[Cell, Cell]],
    *,
    command: str = "",
    directory: Path | str = store.DIRECTORY,
    min_effect: float = MIN_EFFECT,
    environment: Mapping[str, Any],
    clock: Callable[[], float] = time.monotonic,
    launchers: Callable[[Side], Any] = lambda side: ForkServer(directory=side.checkout, environment=side.environment),
) -> Generator[Opened | Event | Compared]:
    """Measure both sides of ``cells``; each pair is on the disk when it is given.

    ``environment``: where this is. ``launchers`` gives what starts the processes of a side, as a context.

    Raises:
        DpbenchError: for whatever can be known to be wrong of the new side before; then nothing is written.
    """
    with ExitStack() as stack:
        where = {**environment, "settings": settings_of(suite)}
        run = uuid.uuid4().hex
        servers = {
            seat: stack.enter_context(launchers(new if seat == "new" else base))
            for seat in (SEATS if "seconds" in suite.measure else ("base", "new"))
        }
        check(servers["new"], [new for _, new in cells], suite.timeout_s)
        writers = {
            seat: stack.enter_context(
                store.create(
                    f"ab-{suite.name}-{seat}",
                    [pair[i] for pair in cells],
                    {**where, "side": _described(side)},
                    command,
                    directory,
                    run=run,
                )
            )
            for i, (seat, side) in enumerate((("base", base), ("new", new)))
        }
        yield Opened(base=writers["base"].path, new=writers["new"].path, cells=tuple(cells), environment=where)
        sources = [sources_of(servers[seat], [pair[i] for pair in cells]) for i, seat in enumerate(("base", "new"))]
        both = PairedTiming(suite, servers, min_effect, clock)
        workloads = group(new for _, new in cells)
        for number, workload in enumerate(workloads):
            own = [pair for pair in cells if pair[1].workload == workload]
            records: list[dict[Cell, Record]] = [{}, {}]
            for i, seat in enumerate(("base", "new")):
                runner = Runner(
                    launcher=servers[seat],
                    rounds=0,
                    measure=[what for what in suite.measure if what != "seconds"],
                    timeout_s=suite.timeout_s,
                    sources=sources[i],
                    environment=writers[seat].header.environment,
                    command=command,
                )
                with closing(runner.run([pair[i] for pair in own])) as events:
                    for event in events:
                        if isinstance(event, Record):
                            records[i][event.cell] = event
                        else:
                            yield replace(event, done=(number + 0.1 * (i + event.done)) / len(workloads))
            made = [(_of_base(records[0][b], base), records[1][n]) for b, n in own]
            if "seconds" in suite.measure:
                share = number / len(workloads), 0.8 / len(workloads)
                made = yield from both.timed(made, share)
            for before, after in made:
                writers["base"].append(before)
                writers["new"].append(after)
                yield Compared(before, after)


def _of_base(record: Record, base: Side) -> Record:
    """Of an implementation whose file the base does not have yet, that it is new is no failure."""
    name = record.cell.implementation
    if record.outcome is not Outcome.FAILED or base.checkout is None or not name.endswith(".py"):
        return record
    if (base.checkout / name).is_file():
        return record
    return replace(record, outcome=Outcome.REFUSED, reason=f"{name} is not there in {base.name}: it is new")


def sources_of(launcher: Launcher, cells: Sequence[Cell]) -> dict[str, str]:
    """Hashes of the implementations as that side has them; none where its dpbench does not tell."""
    wanted = tuple(dict.fromkeys(c.implementation for c in cells))
    job = Job(kind="sources", workload=cells[0].workload, implementations=wanted)
    seen = supervise(launcher, job, Patience(60))
    return {s.implementation: str(s.values["source"]) for s in seen if isinstance(s, Finding)}


def _described(side: Side) -> dict[str, Any]:
    from dpbench.environment import revision

    checkout = side.checkout
    return {"name": side.name, "revision": None if checkout is None else revision(checkout)}
