"""Pairs of cells timed in rounds in which both sides take turns, and what is slower or faster once more.

The base is there twice: its control is the base beside itself, timed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from dpbench.change import Verdict
from dpbench.child import Launcher
from dpbench.coverage import Coverage
from dpbench.job import Job
from dpbench.records import Metric, Outcome, Record, Workload
from dpbench.runner import Event, Progress
from dpbench.slowdown import of_one_run
from dpbench.state import watched
from dpbench.suite import Suite
from dpbench.supervise import Ended, Patience
from dpbench.timed import AGAIN, CONTROL, CONTROL_AGAIN, REPEATS, SECONDS, Timed
from dpbench.turns import Seat, Taking

SEATS = ("base", "control", "new")

Records = list[tuple[Record, Record]]


@dataclass(slots=True)
class PairedTiming:
    """Times pairs of records that are ok on both sides."""

    suite: Suite
    servers: Mapping[str, Launcher]
    min_effect: float
    clock: Callable[[], float]

    def timed(self, made: Records, share: tuple[float, float]) -> Generator[Event, None, Records]:
        """The records with their times; who does not get through it is recorded so, and the others go on."""
        ok = [i for i, pair in enumerate(made) if all(r.outcome is Outcome.OK for r in pair)]
        if not ok:
            return made
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
            warm_up_s=self.suite.budget_s,
        )
        # What takes a round longer than that will not do better in the next.
        return Seat(self.servers[seat], job, Patience(self.suite.timeout_s, self.clock))

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
    control = took["control"].metrics(CONTROL if metric == SECONDS else CONTROL_AGAIN)
    before = {**base.metrics, **took["base"].metrics(metric), **control}
    after = {**new.metrics, **took["new"].metrics(metric)}
    return (
        replace(base, metrics=before, rounds=(*base.rounds, *took["base"].rounds)),
        replace(new, metrics=after, rounds=(*new.rounds, *took["new"].rounds)),
    )
