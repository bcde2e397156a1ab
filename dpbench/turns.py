"""One round in which processes take turns, so that what the machine does falls on all of them alike.

Each is warm before any is timed; then one after the other is told to time its steps for a while, in an order that
is drawn, and reversed every second time. Meanwhile the others wait. No torch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpbench import schedule
from dpbench.child import Launcher
from dpbench.job import Job
from dpbench.supervise import Ended, Finding, Patience, Waiting, supervise

TURNS = 6
"""Of each process in a round."""
LEAST = 3
"""Turns, however long they take: the median of three steps does without one that other work fell into."""


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
    facts: dict[str, Any] = field(default_factory=dict)


def take_turns(seats: Mapping[str, Seat], seed: int) -> Generator[tuple[str, str], None, Taken]:
    """Run one round; gives seat and implementation of whoever starts to get ready.

    The budget of a job is one of all its turns.
    """
    taken = Taken()
    heard = {
        key: supervise(
            seat.launcher, replace(seat.job, kind="turns", budget_s=seat.job.budget_s / TURNS), seat.patience
        )
        for key, seat in seats.items()
    }
    try:
        waiting: dict[str, Waiting] = {}
        for key in seats:
            yield from _ready(key, heard[key], taken, waiting)
            if key not in waiting:
                return taken
        budget = max(seat.job.budget_s * max(len(seat.job.implementations), 1) for seat in seats.values())
        spent = 0.0
        for turn, block in enumerate(schedule.blocks(dict.fromkeys(seats, TURNS), seed)):
            if turn >= LEAST and spent > budget * len(seats):
                break
            for key in block:
                waiting[key].tell("go")
                before = seats[key].patience.now()
                _listen(key, heard[key], taken, waiting)
                spent += seats[key].patience.now() - before
                if taken.ended:
                    return taken
        for key in seats:
            waiting[key].tell("")
            _listen(key, heard[key], taken, waiting)
    finally:
        for one in heard.values():
            one.close()
    return taken


Heard = Generator[Any, None, None]


def _ready(key: str, heard: Heard, taken: Taken, waiting: dict[str, Waiting]) -> Iterator[tuple[str, str]]:
    for seen in heard:
        if isinstance(seen, str):
            yield key, seen
        elif _noted(key, seen, taken, waiting):
            return


def _listen(key: str, heard: Heard, taken: Taken, waiting: dict[str, Waiting]) -> None:
    for seen in heard:
        if not isinstance(seen, str) and _noted(key, seen, taken, waiting):
            return


def _noted(key: str, seen: Any, taken: Taken, waiting: dict[str, Waiting]) -> bool:
    """Whether there is no more to hear for now."""
    match seen:
        case Waiting():
            waiting[key] = seen
            return True
        case Ended():
            taken.ended.append((key, seen))
            return True
        case Finding(name, values):
            taken.found.setdefault(key, {})[name] = values
        case dict():
            taken.facts = seen
    return False
