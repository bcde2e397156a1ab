"""Timing steps in one process: each is repeated until it is steady, then all are timed interleaved."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import dataclass

from dpbench import contain, schedule
from dpbench.built import Built
from dpbench.errors import Refused
from dpbench.job import Job, Send, Talk
from dpbench.meters import Meter, Sample, meter_for
from dpbench.prepared import Prepared
from dpbench.telling import Telling
from dpbench.tensors import marks

FASTER = 0.98
"""Of the fastest step so far: one that takes longer than that brought nothing."""
PATIENCE = 2
"""So many steps in a row that bring nothing end the warm-up."""
SHARE = 0.05
"""Of the warm-up's time, that it takes at least: a CPU needs some milliseconds to reach its clock."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Steps that are not counted."""

    steps: int
    settled: bool
    """Whether they had become steady before their time was up."""
    seconds: float
    """What the last of them took."""


def warm_up(step: Prepared, meter: Meter, limit_s: float) -> WarmUp:
    """Run a step until it gets no faster, or for ``limit_s``.

    The first is not looked at, but for its result, which has to be finite. Any drift to slower steps that follows
    (a clock that falls) is what training has, too, and is not waited for.
    """
    step.warm_up()
    steps, fruitless, spent, fastest = 1, 0, 0.0, math.inf
    while True:
        step.time(meter)
        (sample,) = meter.samples()
        steps, spent = steps + 1, spent + sample.seconds
        fruitless = 0 if sample.seconds < FASTER * fastest else fruitless + 1
        fastest = min(fastest, sample.seconds)
        if fruitless >= PATIENCE and spent >= SHARE * limit_s:
            return WarmUp(steps, True, sample.seconds)
        if spent >= limit_s:
            return WarmUp(steps, False, sample.seconds)


def timing(job: Job, send: Send) -> None:
    """Time the implementations interleaved; one that raises ends the round, which is repeated without it."""
    if (clock := Clock.of(job, send)) is not None and clock.run(job.seed):
        clock.tell()


def turns(job: Job, send: Talk) -> None:
    """The same, but a part of it whenever it is told to: meanwhile another process has its turn."""
    if (clock := Clock.of(job, send)) is None:
        return
    send({"event": "ready"})
    turn = 0
    while send.hear():
        if not clock.run(job.seed + turn):
            return
        turn += 1
        send({"event": "turn"})
    clock.tell()


class Clock:
    """The implementations of a job, warm, and what was taken of each."""

    def __init__(self, job: Job, send: Send, meter: Meter) -> None:
        self._job, self._send, self._meter = job, send, meter
        self._steps: dict[str, Prepared] = {}
        self._warm: dict[str, WarmUp] = {}
        self._samples: dict[str, list[Sample]] = {}
        self._started = time.time()

    @classmethod
    def of(cls, job: Job, send: Send) -> Clock | None:
        """Build and warm up; None where one ended, which has been told."""
        if job.workload.device == "cpu":
            contain.keep_freed_memory()
        built = Built(job.workload, job.workload.physical)
        send({"event": "facts", "facts": built.facts})
        clock = cls(job, send, meter_for(built.device))
        for name in job.implementations:
            with Telling(name, send) as telling:
                clock._steps[name] = ready(name, built, job)
                clock._warm[name] = warm_up(clock._steps[name], clock._meter, job.budget_s)
                clock._samples[name] = []
            if telling.failed:
                return None
        return clock

    def run(self, seed: int) -> bool:
        """Time all for the budget of the job, in an order drawn with ``seed``; whether nobody raised."""
        seconds = {name: warm.seconds for name, warm in self._warm.items()}
        order = []
        gc.collect()
        gc.disable()
        try:
            for block in schedule.blocks(schedule.counts(seconds, self._job.budget_s), seed):
                for name in block:
                    with Telling(name, self._send) as telling:
                        self._steps[name].time(self._meter)
                    if telling.failed:
                        return False
                    order.append(name)
                gc.collect()
        finally:
            gc.enable()
        for name, sample in zip(order, self._meter.samples(), strict=True):
            self._samples[name].append(sample)
        return True

    def tell(self) -> None:
        """The samples of each, to the nanosecond; when they began, to the microsecond."""
        for name, samples in self._samples.items():
            with Telling(name, self._send):
                self._send(
                    {
                        "event": "result",
                        "implementation": name,
                        "seconds": [round(s.seconds, 9) for s in samples],
                        "at": [round(s.at - self._started, 6) for s in samples],
                        "started": round(self._started, 6),
                        "warm_up": self._warm[name].steps,
                        "settled": self._warm[name].settled,
                    }
                )


def ready(name: str, built: Built, job: Job) -> Prepared:
    """``name`` prepared on ``built``, which others share, or on a model of its own if it leaves marks on that.

    Raises:
        Refused: it leaves them there even when it is closed, for those that were prepared before it.
    """
    before = marks(built.model)
    prepared = Prepared(name, built, job.workload)
    if marks(built.model) == before:
        return prepared
    prepared.close()
    if marks(built.model) != before:
        raise Refused(
            f"{name} leaves a hook, an attribute or a mode on the model after close(), which others are timed on, too. "
            "Undo in close() what prepare did, or run it without others."
        )
    return Prepared(name, Built(job.workload, job.workload.physical), job.workload)
