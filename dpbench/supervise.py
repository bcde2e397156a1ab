"""Listening to one child: what it finds, whom it is working on, and whose fault it is when it ends early."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, MutableMapping
from dataclasses import dataclass
from typing import Any

from dpbench.child import Child, Launcher
from dpbench.job import Job, Message
from dpbench.outcome import of_ending
from dpbench.records import Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure of one implementation."""

    implementation: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """It is over for one implementation; None: for all of the job, since none was at work yet."""

    implementation: str | None
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits for a word; nobody's time runs until it is listened to again."""

    tell: Callable[[str], None]


class Patience:
    """How long each implementation may take in all, over every child that works on it."""

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_s, self._clock = timeout_s, clock
        self._spent: dict[str | None, float] = {}
        self._who: str | None = None
        self._since = clock()

    def now(self) -> float:
        """The time on its clock."""
        return self._clock()

    def turn_to(self, who: str | None) -> None:
        """From now on the time is that of ``who``; None stands for what comes before the first."""
        now = self._clock()
        self._spent[self._who] = self._spent.get(self._who, 0.0) + now - self._since
        self._who, self._since = who, now
        if who is None:
            self._spent[None] = 0.0

    def left(self) -> float:
        """Seconds until whoever is at work has had its time."""
        return self.timeout_s - self._spent.get(self._who, 0.0) - (self._clock() - self._since)


def supervise(
    launcher: Launcher, job: Job, patience: Patience, mistakes: MutableMapping[str, str] | None = None
) -> Generator[str | dict[str, Any] | Finding | Ended | Waiting]:
    """Run ``job``: gives the name of whoever starts, the model's facts, findings and ends, as they come."""
    patience.turn_to(None)
    child = launcher.start(job)
    who: str | None = None
    try:
        while True:
            try:
                message = child.receive(patience.left())
            except TimeoutError:
                yield Ended(who, Outcome.TIMED_OUT, f"took longer than {patience.timeout_s:g} s ({job.kind})")
                return
            if message is None:
                yield Ended(who, *of_ending(child.wait()))
                return
            event = message["event"]
            if event == "started":
                who = message["implementation"]
                patience.turn_to(who)
                yield who
            elif event == "done":
                _remember(launcher, message)
                return
            elif event in ("ready", "turn"):
                patience.turn_to(None)
                yield Waiting(child.tell)
                patience.turn_to(who)
            elif event == "mistake":
                if mistakes is not None:
                    mistakes[message["reason"]] = message["workload"]
            else:
                yield _seen(message)
    finally:
        patience.turn_to(None)
        _finish(child)


def _seen(message: Message) -> dict[str, Any] | Finding | Ended:
    if message["event"] == "facts":
        facts: dict[str, Any] = message["facts"]
        return facts
    if message["event"] == "ended":
        return Ended(message["implementation"], Outcome(message["outcome"]), message["reason"])
    values = {k: v for k, v in message.items() if k not in ("event", "implementation")}
    return Finding(message["implementation"], values)


def _remember(launcher: Launcher, message: Message) -> None:
    """Tell a server that can make use of it what the child had to import."""
    if (remember := getattr(launcher, "remember", None)) is not None:
        remember(message.get("imported", []))


def _finish(child: Child) -> None:
    child.kill()
    child.wait()
