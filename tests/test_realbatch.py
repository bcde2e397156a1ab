"""The largest batch by real steps, with children whose need is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.errors import DpbenchError, Refused
from dpbench.realbatch import largest
from dpbench.records import Outcome, Workload
from tests.test_runner import FakeChild, ended, started

W = Workload(model="synthetic:mlp", batch=1)


class Launcher:
    """A step needs ``fixed`` bytes that stay and ``each`` for an example; above ``there`` it runs out of memory."""

    def __init__(self, fixed=100, each=10, there=10**9, outcome=None):
        self.fixed, self.each, self.there, self.outcome = fixed, each, there, outcome
        self.jobs = []

    def start(self, job):
        self.jobs.append(job)
        peak = self.each * job.workload.batch
        outcome = self.outcome or (Outcome.OUT_OF_MEMORY if self.fixed + peak > self.there else None)
        if outcome is not None:
            return FakeChild([started("bk"), ended("bk", outcome, "why"), {"event": "done"}], 0)
        memory = {"resident": float(self.fixed), "peak_live": float(peak)}
        return FakeChild([started("bk"), {"event": "result", "implementation": "bk", "memory": memory}], 0)


@given(st.integers(101, 5000), st.integers(0, 600))
def test_it_fits_and_its_successor_does_not_wherever_the_trace_was(capacity, traced):
    launcher = Launcher()
    found = largest("bk", W, capacity, traced, launcher)
    assert found.batch == (capacity - 100) // 10
    assert found.traced == traced
    assert found.need == 100 + 10 * max(found.batch, 1) or found.batch == 0


def test_a_trace_that_is_right_takes_two_steps():
    launcher = Launcher()
    found = largest("bk", W, 1000, 90, launcher)
    assert (found.batch, found.tries) == (90, 2)
    assert [job.workload.batch for job in launcher.jobs] == [90, 91]
    assert {job.capacity for job in launcher.jobs} == {1000}, "a device is held to it"


def test_running_out_of_memory_is_an_answer():
    found = largest("bk", W, 1000, 90, Launcher(there=600))
    assert found.batch == 50


def test_what_is_tried_is_told():
    said = []
    largest("bk", W, 1000, 90, Launcher(there=950), say=said.append)
    assert said[0] == "  bk B=90 out of memory"
    assert said[-1].startswith("  bk B=8")


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Outcome.REFUSED, Refused), (Outcome.FAILED, DpbenchError), (Outcome.TIMED_OUT, DpbenchError)],
)
def test_another_end_is_no_answer(outcome, error):
    with pytest.raises(error, match="why"):
        largest("bk", W, 1000, 90, Launcher(outcome=outcome))
