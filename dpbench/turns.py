"""One round in which processes take turns, so that what the machine does falls on all of them alike.

Each is warm before any is timed; then one after the other is told to time its steps for a while, in an order that
is drawn, and reversed every second time. Meanwhile the others wait. No torch.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpbench import schedule
from dpbench.child import Launcher
from dpbench.job import Job
from dpbench.supervise import Ended, Finding, Patience, Waiting, supervise

TURNS = 6
"""Of each process in a round."""
LEAST = 4
"""Turns, however long they take: an even number has every process first and last as often as the others."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where one process sits."""

    launcher: Launcher
    job: Job
    patience: Patience


@dataclass(slots=True)
class Taken:
    """What came of a round."""

    found: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """By seat and implementation."""
    ended: list[tuple[str, Ended]] = field(default_factory=list)
    """By seat, who did not get through it: then nothing of the round counts."""


class Taking:
    """A round that is taken by going through it: gives seat and implementation of whoever is at work.

    The budget of a job is one of all its turns.
    """

    def __init__(self, seats: Mapping[str, Seat], seed: int) -> None:
        self.taken = Taken()
        self._seats, self._seed = seats, seed
        self._heard = {key: _heard(seat) for key, seat in seats.items()}
        self._waiting: dict[str, Waiting] = {}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        try:
            yield from self._round()
        finally:
            for heard in self._heard.values():
                heard.close()

    def _round(self) -> Iterator[tuple[str, str]]:
        # Whoever starts last is the freshest, in every round another one.
        for key in random.Random(self._seed).sample(list(self._seats), len(self._seats)):
            yield from self._listen(key)
            if self.taken.ended:
                return
        budget = sum(seat.job.budget_s * max(len(seat.job.implementations), 1) for seat in self._seats.values())
        spent = 0.0
        for turn, block in enumerate(schedule.blocks(dict.fromkeys(self._seats, TURNS), self._seed)):
            if turn >= LEAST and spent > budget:
                break
            for key in block:
                before = self._seats[key].patience.now()
                self._waiting[key].tell("go")
                yield from self._listen(key)
                spent += self._seats[key].patience.now() - before
                if self.taken.ended:
                    return
        for key in self._seats:
            self._waiting[key].tell("")
            yield from self._listen(key)

    def _listen(self, key: str) -> Iterator[tuple[str, str]]:
        """Until it waits, or has ended."""
        for seen in self._heard[key]:
            match seen:
                case str():
                    yield key, seen
                case Waiting():
                    self._waiting[key] = seen
                    return
                case Ended():
                    self.taken.ended.append((key, seen))
                    return
                case Finding(name, values):
                    self.taken.found.setdefault(key, {})[name] = values


def _heard(seat: Seat) -> Generator[Any, None, None]:
    job = replace(seat.job, kind="turns", budget_s=seat.job.budget_s / TURNS)
    return supervise(seat.launcher, job, seat.patience)
