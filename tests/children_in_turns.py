"""Children of ``dpbench ab`` on the simulated machine, of whom some get into trouble."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from dpbench.outcome import Ending
from tests.noisy_machine import Child, Machine

QUIET = {"paired": 0.0, "jitter": 0.001, "spikes": 0.0, "drift": 0.0, "slow_clock": 0.0}
WORDS = ("dies", "hangs", "sleeps")


def ended(name, outcome):
    return {"event": "ended", "implementation": name, "outcome": outcome, "reason": f"it {outcome}"}


@dataclass
class Stage:
    """Where launchers of all seats start their children, and who of them does what."""

    trouble: dict = field(default_factory=dict)
    """By seat, kind of job, implementation and turn (0: warm-up): ``dies``, ``hangs``, ``sleeps`` or an outcome."""
    machine: Machine = field(default_factory=lambda: Machine(seed=1, step=0.05, **QUIET))
    factors: dict = field(default_factory=dict)
    seats: list = field(default_factory=lambda: ["base", "control", "new"])
    children: list = field(default_factory=list)
    turns: list = field(default_factory=list)
    """Seats in the order of their turns; None where a round begins."""

    def launchers(self, side):
        return Launcher(self, self.seats.pop(0))

    def alive(self):
        return [child for child in self.children if not child.over]


@dataclass
class Launcher:
    stage: Stage
    seat: str
    jobs: list = field(default_factory=list)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def start(self, job):
        assert not [c for c in self.stage.alive() if c.seat == self.seat], "one child at a time"
        self.jobs.append(job)
        if job.kind == "turns" and self.seat == "base":
            self.stage.turns.append(None)
        child = Troubled(self.stage, self.seat, job)
        self.stage.children.append(child)
        return child


class Troubled(Child):
    def __init__(self, stage, seat, job):
        factors = {name: stage.factors.get((seat, name), 1.0) for name in job.implementations}
        super().__init__(job, stage.machine, factors)
        self.seat, self.over, self._stage, self._kind, self._words = seat, False, stage, job.kind, 0
        self._trouble(0)

    def _trouble(self, turn):
        for name in self._job.implementations:
            found = self._stage.trouble.get((self.seat, self._kind, name, turn))
            if callable(found):
                found = found()
            if found is not None:
                how = found if found in WORDS else ended(name, found)
                self._messages = [{"event": "started", "implementation": name}, how]
                if self._kind != "turns" and how not in WORDS:
                    self._messages.append({"event": "done"})

    def receive(self, timeout):
        message = super().receive(timeout)
        if message == "sleeps":
            time.sleep(600)
        if message == "hangs":
            raise TimeoutError
        return None if message == "dies" else message

    def tell(self, word):
        super().tell(word)
        if word:
            self._stage.turns.append(self.seat)
            self._words += 1
            self._trouble(self._words)

    def kill(self):
        self.over = True

    def wait(self):
        self.over = True
        return Ending(-11, "", 0)


def rounds_of(turns):
    """The turns of each round, as they were taken."""
    found = []
    for seat in turns:
        if seat is None:
            found.append([])
        else:
            found[-1].append(seat)
    return found
