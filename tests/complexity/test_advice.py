"""Advice from lines that are worked by hand."""

from __future__ import annotations

from math import ceil
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.cards import CONTEXT, Card
from dpbench.complexity.advice import (
    LOGITS,
    Setting,
    Training,
    accumulated,
    alive,
    cost,
    hardly_matters,
    prices_of,
    ranked,
)
from dpbench.complexity.line import Line
from dpbench.complexity.roofline import Seconds
from dpbench.complexity.trace import Operation, Trace
from dpbench.errors import DpbenchError


def card(capacity):
    return Card("made", capacity + CONTEXT, 1e9, 0.0, MappingProxyType({"fp32": 1e3}), (), "by hand")


def trace(batch, flops=1000, each=10):
    """A second for each example, 10 bytes for each, and 3 seconds of optimizer."""
    work = Operation("aten.mm", "1", "w", "", "float32", 1, flops * batch, 0)
    update = Operation("aten.mm", "update", "w", "", "float32", 1, 3000, 0)
    return Trace(
        (work, update), {"1": each * batch}, {"1: lm_head": 6 * batch, "2a: losses": 3 * batch, "1: h": batch}, 100
    )


def line(**changed):
    return Line(trace(2, **changed), trace(3, **changed), 2, 3)


def test_without_a_logical_batch_the_largest_that_fits_is_a_step():
    found = Setting("fp32", Training(), 1000, 64).offer("bk", line(), card(180), 64)
    assert (found.batch, found.times, found.examples, found.need) == (8, 1, 8, 180)
    assert found.step.expected == pytest.approx(8 + 3)
    assert found.rate == pytest.approx(8 / 11)


def test_a_logical_batch_is_divided_evenly_with_one_update_and_room_for_the_sum():
    """50 bytes are the sum's: 3 at a time fit, so 10 examples take 4 batches, of which 3 hold all."""
    found = Setting("fp32", Training(logical=10), 50, 10).offer("bk", line(), card(180), 10)
    assert (found.batch, found.times, found.examples) == (3, 4, 10)
    assert found.step.expected == pytest.approx(4 * 3 + 3, rel=1e-6)
    assert found.need == 100 + 30 + 50


def test_a_logical_batch_that_fits_whole_needs_no_sum():
    found = Setting("fp32", Training(logical=8), 1000, 8).offer("bk", line(), card(180), 8)
    assert (found.batch, found.times, found.need) == (8, 1, 180)


@given(st.integers(1, 1000), st.integers(111, 2000), st.integers(0, 100))
def test_an_offer_always_fits_and_goes_through_all_examples(logical, capacity, gradient):
    found = Setting("fp32", Training(logical=logical), gradient, logical).offer("bk", line(), card(capacity), logical)
    if found is not None:
        assert found.need <= capacity
        assert found.times == ceil(logical / found.batch)


def test_where_not_one_example_fits_there_is_no_offer():
    assert Setting("fp32", Training(), 0, 64).offer("bk", line(), card(109), 64) is None


def test_hours_and_cost_follow_from_the_steps_of_all_epochs():
    found = Setting("fp32", Training(), 0, 64).offer("bk", line(), card(180), 64)
    training = Training(examples=800, epochs=1.5)
    hours = found.hours(training)
    assert hours.expected == pytest.approx(150 * 11 / 3600)
    assert hours.low <= hours.expected <= hours.high
    assert cost(hours, 2.0).expected == pytest.approx(2 * 150 * 11 / 3600)
    assert found.hours(Training()) is None
    assert cost(None, 2.0) is None
    assert cost(hours, None) is None


def test_an_update_comes_once_for_all_physical_batches():
    work, update, sums = accumulated(trace(2), 5, 100).operations
    assert (work.flops, work.count) == (5 * 2000, 5)
    assert (update.flops, update.count) == (3000, 1)
    assert (sums.flops, sums.bytes) == (0, 4 * 300)
    assert len(accumulated(trace(2), 1, 100).operations) == 2


def test_the_fastest_is_first_and_of_equals_the_leaner():
    offers = [
        Setting("fp32", Training(logical=4), 0, 4).offer(name, line(flops=flops, each=each), card(1000), 4)
        for name, flops, each in (("slow", 2000, 1), ("fat", 1000, 20), ("lean", 1000, 10))
    ]
    assert [o.implementation for o in ranked(offers)] == ["lean", "fat", "slow"]
    assert hardly_matters(offers) is None
    assert hardly_matters(offers[1:]) == pytest.approx(1.0)
    assert hardly_matters(offers[:1]) is None


def test_logits_and_losses_are_one_part_of_what_is_alive():
    assert alive(trace(10))[0] == (LOGITS, pytest.approx(0.9))


def test_prices_are_by_card_as_it_is_called():
    assert prices_of(["l4=0.8", "T4=0.35"]) == {"L4": 0.8, "T4": 0.35}
    for nonsense in ("L4", "L4=", "L4=cheap"):
        with pytest.raises(DpbenchError, match="expected CARD=PRICE"):
            prices_of([nonsense])
    for nonsense in ("L4=0", "L4=-1", "L4=nan"):
        with pytest.raises(DpbenchError, match="expected a positive price"):
            prices_of([nonsense])
    with pytest.raises(DpbenchError, match="unknown card"):
        prices_of(["L44=1"])


def test_a_range_of_hours_is_a_range_of_cost():
    assert cost(Seconds(1, 2, 3), 2.0) == Seconds(2, 4, 6)
