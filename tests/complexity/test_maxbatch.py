"""The largest batch: the search, on needs that are known, and the answer against its neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpbench.cards import CONTEXT
from dpbench.complexity.maxbatch import MOST, MOST_ONE_BY_ONE, capacity_of, largest, search, to_run
from dpbench.complexity.tracing import trace_of
from dpbench.errors import DpbenchError
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
    most=st.integers(1, 20) | st.just(MOST),
)
def test_the_answer_fits_and_its_successor_does_not(constant, slope, kink, jump, floor, capacity, most):
    def need(batch):
        return max(constant + slope * batch + (jump if batch > kink else 0), floor)

    found = search(need, capacity, most)
    assert found <= most
    assert found == 0 or need(found) <= capacity
    assert found == most or need(found + 1) > capacity


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


def test_no_batch_is_larger_than_the_logical_one():
    logical = replace(TRANSFORMER, logical_batch=40, batch="max")
    whole = to_run("bk", logical, 10**9)
    assert (whole.batch, whole.next) == (40, None)
    capacity = largest("bk", TRANSFORMER, 10**9, most=18).need
    part = to_run("bk", logical, capacity)
    # The sum of the batches before takes room as well.
    assert 0 < part.batch < 18
    assert part.need <= capacity < part.next


def test_a_run_takes_few_examples_where_they_go_one_by_one():
    assert to_run("tf_privacy", replace(TRANSFORMER, batch="max"), 10**9).batch == MOST_ONE_BY_ONE
    assert to_run("tf_privacy", replace(TRANSFORMER, batch="max", logical_batch=100), 10**9).batch == 100


def test_a_card_has_its_memory_without_the_context(monkeypatch):
    class Properties:
        total_memory = 80 * 2**30

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    assert capacity_of("cuda") == 80 * 2**30 - CONTEXT
    with pytest.raises(DpbenchError, match="cuda:3 is not there"):
        capacity_of("cuda:3")
