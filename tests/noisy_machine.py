"""A machine that is simulated: nothing is timed, the clock is told how long everything takes, and by how much it lies.

What disturbs a step, each as on real machines: every process has luck of its own (where its memory lies), single steps
are hit by other work, the whole machine drifts slowly, and its clock has two speeds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

from dpbench import schedule
from dpbench.outcome import Ending
from dpbench.records import Cell, Workload
from dpbench.sides import Side
from dpbench.state import State
from dpbench.suite import Suite

SEATS = 3
"""Processes of a round."""
WORKLOAD = Workload(model="simulated", batch=8)
PARITY = {"passed": True, "error": 1e-15, "tolerance": 1e-8, "precision": "float64", "worst": "norms"}
COVERAGE = {"asked": 9, "trained": 9, "frozen": {}, "norms": {}}
FIGURES = {
    "sources": {"source": "abc"},
    "parity": {"parity": PARITY, "coverage": COVERAGE},
    "trace": {"traced": {"flops": 9, "bytes": 8, "peak": 7, "modules": {"1": 9}}},
    "memory": {"memory": {"peak_live": 5.0}},
}
"""What a child tells of each implementation, by the kind of its job."""


@dataclass
class Machine:
    """Its clock, and what is wrong with it."""

    seed: int
    step: float = 0.02
    """Seconds of a step that nothing disturbs."""
    paired: float = 0.03
    """Standard deviation of the ratio of two processes of the same round."""
    jitter: float = 0.03
    """Of single steps."""
    spikes: float = 0.05
    """Share of steps that take 1.3 to 3 times as long."""
    drift: float = 0.1
    """How far the speed swings, over ten minutes."""
    slow_clock: float = 0.15
    """How much longer a step takes at the lower of two clocks, which change about once a minute."""
    late: float = 0.03
    """How much faster the process is that started last in a round: caches hold what it read."""
    now: float = 0.0
    starts: int = 0
    """Of processes that take turns."""
    draws: random.Random = field(init=False)
    _low: bool = False

    def __post_init__(self) -> None:
        self.draws = random.Random(self.seed)

    def luck(self) -> float:
        """Of a process."""
        return math.exp(self.draws.gauss(0, self.paired / math.sqrt(2)))

    def take(self, seconds: float) -> float:
        """How long it takes to do what takes ``seconds`` undisturbed."""
        if self.draws.random() < seconds / 60:
            self._low = not self._low
        seconds *= math.exp(self.draws.gauss(0, self.jitter) + self.drift * math.sin(self.now / 95))
        seconds *= 1 + self.slow_clock * self._low
        if self.draws.random() < self.spikes:
            seconds *= self.draws.uniform(1.3, 3.0)
        self.now += seconds
        return seconds


class Launcher:
    """Starts simulated children; ``factors``: how much longer each implementation takes than the machine's step."""

    def __init__(self, machine: Machine, factors: Mapping[str, float]) -> None:
        self._machine, self._factors = machine, factors

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def start(self, job):
        return Child(job, self._machine, self._factors)


class Child:
    """Answers each kind of job at once."""

    def __init__(self, job, machine: Machine, factors: Mapping[str, float]) -> None:
        self._job, self._machine = job, machine
        fresh = 1.0
        if job.kind == "turns":
            machine.starts += 1
            fresh = 1 - machine.late * (machine.starts % SEATS == 0)
        self._seconds = {n: machine.step * factors[n] * machine.luck() * fresh for n in job.implementations}
        self._taken = {name: [] for name in job.implementations}
        self._started, self._turn, self._ended = machine.now, 0, False
        self._messages = [{"event": "facts", "facts": {"parameters": 9, "trainable": 9}}]
        for name in job.implementations:
            self._messages.append({"event": "started", "implementation": name})
            if job.kind != "turns":
                self._messages.append({"event": "result", "implementation": name, **FIGURES[job.kind]})
        self._messages.append({"event": "ready" if job.kind == "turns" else "done"})

    def receive(self, timeout):
        return self._messages.pop(0) if self._messages else None

    def tell(self, word):
        if word:
            counts = schedule.counts(self._seconds, self._job.budget_s)
            for block in schedule.blocks(counts, self._turn):
                for name in block:
                    at = self._machine.now - self._started
                    self._taken[name].append((at, self._machine.take(self._seconds[name])))
            self._turn += 1
            self._messages.append({"event": "turn"})
            return
        for name, taken in self._taken.items():
            figures = {"seconds": [s for _, s in taken], "at": [at for at, _ in taken], "started": self._started}
            self._messages.append({"event": "started", "implementation": name})
            self._messages.append({"event": "result", "implementation": name, "warm_up": 4, "settled": True, **figures})
        self._messages.append({"event": "done"})

    def kill(self):
        pass

    def wait(self):
        return Ending(0, "", 0)


def compared(machine: Machine, slowdown: float, directory, rounds: int = 20, budget_s: float = 1.0):
    """``dpbench ab`` of a base and of one that takes ``1 + slowdown`` times as long, on that machine."""
    from dpbench.ab import Compared, ab

    suite = Suite(name="simulated", title="", rounds=rounds, budget_s=budget_s, measure=("seconds",))
    sides = Side(name="base", implementation="base"), Side(name="new", implementation="new")
    cells = [(Cell("base", WORKLOAD), Cell("new", WORKLOAD))]
    factors = {"base": 1.0, "new": 1 + slowdown}
    events = ab(
        suite,
        *sides,
        cells,
        directory=directory,
        environment={"machine": {"id": "simulated"}},
        launchers=lambda side: Launcher(machine, factors),
        clock=lambda: machine.now,
    )
    with patch("dpbench.interleaved.watched", unwatched):
        return next(e for e in events if isinstance(e, Compared))


@contextmanager
def unwatched(device):
    """The real machine is not looked at: it has no part in this, and looking takes longer than all the rest."""
    yield SimpleNamespace(state=State())
