"""Rooflines: seconds worked by hand, and what holds for every trace and card."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.cards import Card, card, cards
from dpbench.complexity.roofline import Seconds, seconds
from dpbench.complexity.trace import Operation, Trace
from dpbench.errors import DpbenchError

ROUND = Card(
    name="round",
    memory=2**34,
    bandwidth=1e9,
    launch=1e-3,
    peaks={"fp64": 0.25e9, "fp32": 1e9, "tf32": 8e9, "bf16": 16e9, "fp16": 32e9},
    torch_names=(),
    source="",
)
"""Of round figures: a GFLOP, a gigabyte or a thousand launches are a second."""

LAUNCH = Operation("aten.add", "1", "", "", "float32", 1000, 0, 10**6)
FLOPS = Operation("aten.mm", "1", "a.weight", "a", "float32", 1, 3 * 10**9, 10**9)
BYTES = Operation("aten.mm", "2a", "a.weight", "a", "float32", 2, 10**8, 2 * 10**9)

operations = st.builds(
    Operation,
    name=st.sampled_from(["aten.mm", "aten.add"]),
    module=st.just("1"),
    parameter=st.just(""),
    within=st.just(""),
    dtype=st.sampled_from(["float32", "bfloat16", "float16", "float64", "int64"]),
    count=st.integers(1, 10**6),
    flops=st.integers(0, 10**18) | st.just(0),
    bytes=st.integers(0, 10**15),
)
traces = st.lists(operations, max_size=8).map(lambda o: Trace(tuple(o)))
speeds = st.floats(1e9, 1e16)
drawn = st.builds(
    Card,
    name=st.just("drawn"),
    memory=st.just(2**34),
    bandwidth=speeds,
    launch=st.floats(1e-7, 1e-3),
    peaks=st.fixed_dictionaries(dict.fromkeys(["fp64", "fp32", "tf32", "bf16", "fp16"], speeds)),
    torch_names=st.just(()),
    source=st.just(""),
)
precisions = st.sampled_from(["fp32", "tf32", "bf16", "amp-bf16"])


def at_most(a, b):
    """But for what adding up in another order rounds differently."""
    return a <= b * (1 + 1e-12)


def test_each_operation_is_bound_by_what_takes_it_longest():
    found = [seconds(Trace((o,)), ROUND, "fp32").expected for o in (FLOPS, BYTES, LAUNCH)]
    assert found == pytest.approx([3.0, 2.0, 1.0])


def test_the_three_figures_of_a_step_worked_by_hand():
    found = seconds(Trace((FLOPS, BYTES, LAUNCH)), ROUND, "fp32")
    assert found.expected == pytest.approx(3 + 2 + 1)
    assert found.low == pytest.approx(max(3 + 0.1, 1 + 2 + 0.001))
    assert found.high == pytest.approx((3 + 0.1) + (1 + 2 + 0.001) + (0.001 + 0.002 + 1))


def test_where_traffic_is_longer_it_is_the_least():
    assert seconds(Trace((BYTES,)), ROUND, "fp32").low == pytest.approx(2.0)


def test_nothing_done_takes_no_time():
    assert seconds(Trace(), ROUND, "fp32") == Seconds(0, 0, 0)


@pytest.mark.parametrize(("precision", "expected"), [("fp32", 8.0), ("tf32", 1.0), ("bf16", 8.0), ("amp-bf16", 8.0)])
def test_float32_is_multiplied_in_tf32_where_the_workload_says_so_alone(precision, expected):
    product = replace(FLOPS, flops=8 * 10**9, bytes=0)
    assert seconds(Trace((product,)), ROUND, precision).expected == pytest.approx(expected)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "amp-bf16"])
@pytest.mark.parametrize(("dtype", "expected"), [("bfloat16", 1.0), ("float16", 0.5), ("float64", 64.0)])
def test_other_dtypes_have_peaks_of_their_own_whatever_the_precision(dtype, expected, precision):
    product = replace(FLOPS, dtype=dtype, flops=16 * 10**9, bytes=0)
    assert seconds(Trace((product,)), ROUND, precision).expected == pytest.approx(expected)


@pytest.mark.parametrize(("dtype", "precision", "lacks"), [("bfloat16", "bf16", "bf16"), ("float32", "tf32", "tf32")])
def test_a_card_without_the_precision_says_so(dtype, precision, lacks):
    with pytest.raises(DpbenchError, match=f"T4 has no {lacks}"):
        seconds(Trace((replace(FLOPS, dtype=dtype),)), card("T4"), precision)


def test_what_multiplies_nothing_needs_no_precision():
    moved = replace(LAUNCH, dtype="bfloat16")
    assert seconds(Trace((moved,)), card("T4"), "bf16").expected > 0


@given(traces, drawn | st.sampled_from([c for c in cards().values() if len(c.peaks) == 5]), precisions)
def test_the_expected_time_is_between_perfect_overlap_and_none(trace, on, precision):
    found = seconds(trace, on, precision)
    assert at_most(found.low, found.expected)
    assert at_most(found.expected, found.high)


@given(traces, drawn, precisions)
def test_one_after_another_is_at_most_thrice_the_expected_time(trace, on, precision):
    found = seconds(trace, on, precision)
    assert at_most(found.high, 3 * found.expected)


@given(traces, drawn, precisions, st.sampled_from(["bandwidth", "peaks", "launch"]))
def test_a_better_card_is_never_slower(trace, on, precision, what):
    better = {
        "bandwidth": replace(on, bandwidth=2 * on.bandwidth),
        "peaks": replace(on, peaks={f: 2 * peak for f, peak in on.peaks.items()}),
        "launch": replace(on, launch=on.launch / 2),
    }[what]
    before, after = seconds(trace, on, precision), seconds(trace, better, precision)
    assert after.low <= before.low
    assert after.expected <= before.expected
    assert after.high <= before.high


@given(traces, drawn, precisions)
def test_twice_as_good_in_everything_takes_half_the_time(trace, on, precision):
    peaks = {f: 2 * peak for f, peak in on.peaks.items()}
    better = replace(on, bandwidth=2 * on.bandwidth, peaks=peaks, launch=on.launch / 2)
    before, after = seconds(trace, on, precision), seconds(trace, better, precision)
    assert after == Seconds(before.low / 2, before.expected / 2, before.high / 2)


@given(traces, traces, drawn, precisions)
def test_more_work_never_takes_less(first, second, on, precision):
    both = seconds(Trace(first.operations + second.operations), on, precision)
    alone = seconds(first, on, precision)
    assert at_most(alone.low, both.low)
    assert at_most(alone.expected, both.expected)
    assert at_most(alone.high, both.high)
