"""Two sides timed in turns: two implementations, or the same ones from two source trees.

Each side is checked, counted and weighed as in any run. Then in every round a process of each, and one more of the
base, are alive at once and take turns. What comes out slower or faster is timed once more before it counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpbench import store
from dpbench.change import Verdict
from dpbench.child import Launcher
from dpbench.coverage import Coverage
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import MAX, Cell, Metric, Outcome, Record, Workload
from dpbench.runner import Event, Progress, Runner
from dpbench.selection import select as selected
from dpbench.sides import Side
from dpbench.slowdown import MIN_EFFECT, of_one_run
from dpbench.state import watched
from dpbench.suite import Suite, group, spelled_out
from dpbench.supervise import Ended, Finding, Patience, supervise
from dpbench.sweep import check, names, settings_of
from dpbench.timed import AGAIN, CONTROL, REPEATS, SECONDS, Timed
from dpbench.turns import Seat, Taking

ROUNDS = 20
"""Where nothing else is asked for: they find a difference of 5 % among rounds that scatter by 4 %."""

SEATS = ("base", "control", "new")


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
        both = _Both(suite, servers, min_effect)
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
            made = [(records[0][b], records[1][n]) for b, n in own]
            if "seconds" in suite.measure:
                share = number / len(workloads), 0.8 / len(workloads)
                made = yield from both.timed(made, share)
            for before, after in made:
                writers["base"].append(before)
                writers["new"].append(after)
                yield Compared(before, after)


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


Records = list[tuple[Record, Record]]


@dataclass(slots=True)
class _Both:
    """Times pairs of records that are ok on both sides."""

    suite: Suite
    servers: Mapping[str, Launcher]
    min_effect: float
    _patience: dict[str, Patience] = field(default_factory=dict)

    def timed(self, made: Records, share: tuple[float, float]) -> Generator[Event, None, Records]:
        """The records with their times; who does not get through it is recorded so, and the others go on."""
        ok = [i for i, pair in enumerate(made) if all(r.outcome is Outcome.OK for r in pair)]
        if not ok:
            return made
        self._patience = {seat: Patience(self.suite.timeout_s) for seat in self.servers}
        start, length = share
        made = yield from self._rounds(made, ok, SECONDS, (start + length / 4, length / 2))
        again = [i for i in ok if self._verdict(made[i]) in (Verdict.SLOWER, Verdict.FASTER)]
        if again:
            made = yield from self._rounds(made, again, AGAIN, (start + 3 * length / 4, length / 4))
        return made

    def _verdict(self, pair: tuple[Record, Record]) -> Verdict:
        base, new = pair
        return of_one_run(new.cell, base, new, self.min_effect).verdict if SECONDS in new.metrics else Verdict.SAME

    def _rounds(
        self, made: Records, which: list[int], metric: str, share: tuple[float, float]
    ) -> Generator[Event, None, Records]:
        made, which = list(made), list(which)
        took = {seat: {i: Timed() for i in which} for seat in self.servers}
        number, repeats = 0, REPEATS
        while which and number < self.suite.rounds:
            workload = made[which[0]][1].cell.workload
            phase = f"round {number + 1} of {self.suite.rounds}{' (once more)' if metric == AGAIN else ''}"
            done = share[0] + share[1] * number / self.suite.rounds
            seats = {seat: self._seat(seat, workload, [made[i] for i in which], number) for seat in self.servers}
            seed = number + (self.suite.rounds if metric == AGAIN else 0)
            with watched(workload.device) as seen:
                for one in (taking := Taking(seats, seed)):
                    yield Progress(workload, f"{one[1]} ({one[0]})", phase, done)
            taken = taking.taken
            if taken.ended:
                # The round is repeated without whoever ended it.
                for i in self._struck(made, which, taken.ended):
                    which.remove(i)
                continue
            again = bool(seen.state.throttled) and repeats > 0
            repeats -= again
            for seat, found in taken.found.items():
                for i in which:
                    took[seat][i].add(found[self._name(made[i], seat)], seen.state, repeated=again)
            number += not again
        for i in which:
            made[i] = _with_times(made[i], {seat: took[seat][i] for seat in took}, metric)
        return made

    def _seat(self, seat: str, workload: Workload, pairs: Records, seed: int) -> Seat:
        implementations = tuple(dict.fromkeys(self._name(pair, seat) for pair in pairs))
        job = Job(
            kind="turns",
            workload=workload,
            implementations=implementations,
            seed=seed,
            budget_s=self.suite.budget_s,
        )
        return Seat(self.servers[seat], job, self._patience[seat])

    def _name(self, pair: tuple[Record, Record], seat: str) -> str:
        return pair[1 if seat == "new" else 0].cell.implementation

    def _struck(self, made: Records, which: list[int], ended: Sequence[tuple[str, Ended]]) -> list[int]:
        """Those of whom one side ended; in ``made`` that side's record says so."""
        struck = []
        for seat, end in ended:
            for i in which:
                if i not in struck and end.implementation in (None, self._name(made[i], seat)):
                    base, new = made[i]
                    if end.outcome is Outcome.OUT_OF_MEMORY and "memory" in self.suite.measure:
                        # Alone it had room: that there is none for three at once is nobody's fault.
                        made[i] = _untimed(base), _untimed(new)
                    else:
                        made[i] = (base, _ended(new, end)) if seat == "new" else (_ended(base, end), new)
                    struck.append(i)
        return struck


def _untimed(record: Record) -> Record:
    reason = "memory ran out while both sides and the control were there at once, as they are in turns: a smaller batch"
    return replace(record, metrics={**record.metrics, SECONDS: Metric("s", ())}, rounds=(), reason=reason)


def _ended(record: Record, end: Ended) -> Record:
    """What ended has no time, also where it ended only when it was repeated; what refused trained nothing."""
    coverage = record.coverage
    if coverage is not None and end.outcome is Outcome.REFUSED:
        coverage = Coverage(coverage.asked, trained=0)
    metrics = {name: metric for name, metric in record.metrics.items() if not name.startswith(SECONDS)}
    return replace(record, outcome=end.outcome, reason=end.reason, metrics=metrics, rounds=(), coverage=coverage)


def _with_times(pair: tuple[Record, Record], took: Mapping[str, Timed], metric: str) -> tuple[Record, Record]:
    base, new = pair
    control = took["control"].metrics(CONTROL) if metric == SECONDS else {}
    before = {**base.metrics, **took["base"].metrics(metric), **control}
    after = {**new.metrics, **took["new"].metrics(metric)}
    return (
        replace(base, metrics=before, rounds=(*base.rounds, *took["base"].rounds)),
        replace(new, metrics=after, rounds=(*new.rounds, *took["new"].rounds)),
    )
