"""The largest batch: the search, on needs that are known, and the answer against its neighbours."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dpbench.complexity.maxbatch import MOST, largest, search
from dpbench.complexity.predict import trace_of
from dpbench.models import build
from dpbench.records import Workload

TRANSFORMER = Workload(model="synthetic:transformer", batch=1, seq_len=16, step="train", optimizer="adamw")


@given(
    constant=st.integers(0, 10**4),
    slope=st.integers(1, 100),
    kink=st.integers(1, 500),
    jump=st.integers(0, 1000),
    floor=st.integers(0, 10**5),
    capacity=st.integers(1, 10**5),
)
def test_the_answer_fits_and_its_successor_does_not(constant, slope, kink, jump, floor, capacity):
    def need(batch):
        return max(constant + slope * batch + (jump if batch > kink else 0), floor)

    found = search(need, capacity)
    assert found == 0 or need(found) <= capacity
    assert found == MOST or need(found + 1) > capacity


def test_where_memory_does_not_grow_there_is_no_largest():
    assert search(lambda batch: 5, 10) == MOST
    assert search(lambda batch: 50, 10) == 0


def test_few_traces_are_enough():
    asked = []
    search(lambda batch: asked.append(batch) or 10**9 + 170 * 10**6 * batch, 40 * 10**9)
    assert len(set(asked)) <= 6


def test_the_largest_batch_of_a_network():
    capacity = 20 * 10**6
    found = {name: largest(name, TRANSFORMER, capacity) for name in ("nonprivate", "bk", "opacus")}
    assert found["opacus"].batch < found["bk"].batch <= found["nonprivate"].batch
    for most in found.values():
        assert most.need <= capacity < most.next
    trace = trace_of("bk", replace(TRANSFORMER, batch=found["bk"].batch))
    assert trace.resident + trace.peak == found["bk"].need


def test_adamw_keeps_two_numbers_for_each_parameter():
    sgd = trace_of("bk", replace(TRANSFORMER, optimizer="sgd"))
    adamw = trace_of("bk", TRANSFORMER)
    parameters = 4 * build(TRANSFORMER).parameters
    assert 0 <= adamw.resident - sgd.resident - 2 * parameters < 1000
