"""Warming up and taking turns, with steps that take the time they are told to."""

from __future__ import annotations

import pytest

from dpbench.job import Job
from dpbench.meters import Sample
from dpbench.records import Workload
from dpbench.timing import turns, warm_up

MLP = Workload(model="synthetic:mlp(width=8,depth=2)", batch=5)


class Steps:
    """A step and its meter: it takes what ``takes`` says, the last of that from then on."""

    def __init__(self, *takes):
        self._takes, self._last, self.first = list(takes), 0.0, 0

    def warm_up(self):
        self.first += 1

    def time(self, meter):
        self._last = self._takes.pop(0) if len(self._takes) > 1 else self._takes[0]

    def samples(self):
        return [Sample(0.0, self._last)]


@pytest.mark.parametrize(
    ("takes", "limit", "steps", "settled"),
    [
        # The first, which is not looked at, one to compare with, and two that are no faster.
        ((1.0,), 10.0, 4, True),
        ((1.0, 0.5, 0.5), 10.0, 5, True),
        # One per cent is nothing; three are.
        ((1.0, 0.99, 0.985), 10.0, 4, True),
        ((1.0, 0.97, 0.94, 0.91), 10.0, 7, True),
        ((1.0, 2.0, 0.9, 0.9), 10.0, 6, True),
        # Its time is up; one is timed in any case, since its length is needed.
        ((1.0, 0.9, 0.8, 0.7, 0.6), 2.5, 4, False),
        ((7.0,), 1.0, 2, False),
        # Short steps go on until a CPU can have reached its clock.
        ((0.001,), 1.0, 51, True),
    ],
)
def test_a_step_is_warm_when_two_in_a_row_bring_nothing(takes, limit, steps, settled):
    step = Steps(*takes)
    found = warm_up(step, step, limit)
    assert (found.steps, found.settled, step.first) == (pytest.approx(steps, abs=1), settled, 1)


class Words:
    """Whoever started the worker: says these words, and listens."""

    def __init__(self, words):
        self.words, self.messages = list(words), []

    def __call__(self, message):
        self.messages.append(message)

    def hear(self):
        return self.words.pop(0) if self.words else ""

    def of(self, event):
        return [m for m in self.messages if m["event"] == event]


def test_turns_are_taken_when_they_are_told_to_and_all_samples_come_at_the_end():
    talk = Words(["go", "go", "go"])
    job = Job(kind="turns", workload=MLP, implementations=("nonprivate", "bk"), budget_s=1e-3)
    turns(job, talk)
    assert len(talk.of("ready")) == 1
    assert len(talk.of("turn")) == 3
    for result in talk.of("result"):
        assert len(result["seconds"]) == len(result["at"]) >= 3
        assert result["at"] == sorted(result["at"])
        assert result["warm_up"] >= 2


def test_who_raises_in_its_turn_ends_them(tmp_path):
    path = tmp_path / "late.py"
    path.write_text("""
from dpbench.interface import Supports
from implementations import bk
TITLE, MODULES, SUPPORTS, PRIVATE = "late", "-", Supports(), True
class Step:
    def __init__(self, *given):
        self.step, self.calls, self.close = bk.prepare(*given), 0, lambda: None
    def __call__(self, batch, **rest):
        self.calls += 1
        if self.calls > 120:
            raise ValueError("enough")
        return self.step(batch, **rest)
prepare = Step
""")
    talk = Words(["go"] * 200)
    turns(Job(kind="turns", workload=MLP, implementations=(str(path),), budget_s=1e-3), talk)
    (ended,) = talk.of("ended")
    assert ended["outcome"] == "failed"
    assert "enough" in ended["reason"]
    assert not talk.of("result")
