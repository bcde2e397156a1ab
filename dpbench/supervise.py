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
from dpbench.told import Garbled, figures, refuse_garbled


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure of one implementation."""

    implementation: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """It is over for one implementation, whatever was found of it before; None: for all of the job, as none was at
    work yet."""

    implementation: str | None
    outcome: Outcome
    reason: str
    died: bool = False
    """Whether that is all there is: its process ended without a word."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits for a word; nobody's time runs until it is listened to again."""

    tell: Callable[[str], None]


Seen = str | dict[str, Any] | Finding | Ended | Waiting
"""Who starts, the facts of the model, a figure, an end, or that a word is waited for."""


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
) -> Generator[Seen]:
    """Run ``job``, and give what is seen of it as it comes.

    Unless there is an end, there is one finding for each implementation of the job.
    """
    patience.turn_to(None)
    child = launcher.start(job)
    who: str | None = None
    found: set[str] = set()
    anyone_ended = False
    try:
        while True:
            if (left := patience.left()) <= 0:
                raise TimeoutError
            if (message := child.receive(left)) is None:
                yield Ended(who, *of_ending(child.wait()), died=True)
                return
            refuse_garbled(message, job, who)
            match message["event"]:
                case "started":
                    who = message["implementation"]
                    patience.turn_to(who)
                    yield message["implementation"]
                case "facts":
                    yield message["facts"]
                case "result":
                    if who is None or who in found:
                        raise Garbled(f"a second result: {message!r:.80}")
                    found.add(who)
                    yield Finding(who, figures(message, job))
                case "ended":
                    anyone_ended = True
                    yield Ended(who, Outcome(message["outcome"]), message["reason"])
                case "ready" | "turn":
                    patience.turn_to(None)
                    yield Waiting(child.tell)
                    patience.turn_to(who)
                case "mistake" if mistakes is not None:
                    mistakes[message["reason"]] = message["workload"]
                case "done":
                    if len(found) < len(job.implementations) and not anyone_ended:
                        raise Garbled("that it is done, without a result of each")
                    _remember(launcher, message)
                    return
    except TimeoutError:
        yield Ended(who, Outcome.TIMED_OUT, f"took longer than {patience.timeout_s:g} s ({job.kind})")
    except Garbled as error:
        yield Ended(
            who,
            Outcome.FAILED,
            f"its process told what no worker does ({error}): something in it writes where it should not, "
            "as to every open descriptor; nothing that it told is believed",
        )
    finally:
        patience.turn_to(None)
        _finish(child)


def _remember(launcher: Launcher, message: Message) -> None:
    """Tell a server that can make use of it what the child had to import."""
    if (remember := getattr(launcher, "remember", None)) is not None:
        remember(message.get("imported", []))


def _finish(child: Child) -> None:
    child.kill()
    child.wait()
