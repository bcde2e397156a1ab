"""Traces: sums over operations, lines through two of them, and the way to JSON and back."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.complexity.trace import MODULES, Operation, Trace, extrapolated
from dpbench.errors import DpbenchError
from dpbench.records import decode

small = st.integers(0, 2**40)
operations = st.builds(
    Operation,
    name=st.sampled_from(["aten.mm", "aten.bmm", "aten.add"]),
    module=st.sampled_from([*MODULES]),
    parameter=st.sampled_from(["", "a.weight", "b.weight"]),
    within=st.sampled_from(["", "a", "b"]),
    dtype=st.sampled_from(["float32", "bfloat16"]),
    count=st.integers(1, 100),
    flops=small,
    bytes=small,
)
traces = st.builds(
    Trace,
    operations=st.lists(operations, max_size=6).map(tuple),
    peaks=st.dictionaries(st.sampled_from([*MODULES]), small),
    alive=st.dictionaries(st.sampled_from(["1: a", "2a: b", "update: losses"]), small),
    resident=small,
)


def nonzero(counter):
    return {key: n for key, n in counter.items() if n}


def merged(trace):
    """Calls, FLOPs and bytes by what an operation is otherwise."""
    found = {}
    for o in trace.operations:
        key = replace(o, count=0, flops=0, bytes=0)
        so_far = found.get(key, (0, 0, 0))
        found[key] = tuple(a + b for a, b in zip(so_far, (o.count, o.flops, o.bytes), strict=True))
    return found


PRODUCT = Operation("aten.mm", "1", "a.weight", "a", "float32", 2, 100, 40)
TRACE = Trace(
    (
        PRODUCT,
        replace(PRODUCT, module="2a", flops=70),
        replace(PRODUCT, module="2a", parameter="b.weight", within="b", flops=5),
        replace(PRODUCT, name="aten.bmm", parameter="", within="h.0.attn", flops=30),
        replace(PRODUCT, name="aten.bmm", module="2a", parameter="", within="h.0.attn", flops=60),
        replace(PRODUCT, name="aten.add", flops=0, bytes=7),
    )
)


def test_flops_with_parameters_are_by_module_and_the_others_by_part_of_the_model():
    assert TRACE.flops == {"1": 100, "2a": 75}
    assert TRACE.others == {"h.0.attn": 90}
    assert TRACE.total == 265
    assert TRACE.traffic == 5 * 40 + 7


def test_flops_are_added_up_by_any_property():
    assert TRACE.by(lambda o: o.name) == {"aten.mm": 175, "aten.bmm": 90}
    assert TRACE.by(lambda o: (o.module, o.parameter))["2a", "b.weight"] == 5
    assert TRACE.by(lambda o: o.name, TRACE.operations[:1]) == {"aten.mm": 100}
    assert TRACE.by(lambda o: o.name, []) == {}


def test_what_has_no_flops_is_in_no_sum_of_them():
    assert "aten.add" not in TRACE.by(lambda o: o.name)


def test_an_empty_trace_costs_nothing():
    assert (Trace().total, Trace().traffic, Trace().flops, Trace().others) == (0, 0, {}, {})
    assert extrapolated(Trace(), Trace(), 7) == Trace()


@given(traces)
def test_every_flop_is_of_a_parameter_or_of_other_work(trace):
    assert trace.flops.total() + trace.others.total() == trace.total
    assert trace.by(lambda o: o).total() == trace.by(lambda o: None).total() == trace.total


@given(traces, traces)
def test_a_batch_of_one_is_the_first_trace_and_a_batch_of_two_the_second(one, two):
    for batch, known in ((1, one), (2, two)):
        found = extrapolated(one, two, batch)
        assert (found.total, found.traffic) == (known.total, known.traffic)
        assert (found.flops, found.others) == (known.flops, known.others)
        assert merged(found) == merged(known)
        assert (found.peak, found.resident) == (known.peak, known.resident)
        assert nonzero(found.peaks) == nonzero(known.peaks)
        assert nonzero(found.alive) == nonzero(known.alive)


@given(st.lists(st.tuples(operations, operations), max_size=5), small, small, st.integers(1, 300), st.integers(1, 9))
def test_what_is_on_a_line_is_extrapolated_exactly(pairs, fixed, each, batch, start):
    """Each operation is done once, and once more for each example."""

    def of(examples):
        done = []
        for i, (once, more) in enumerate(pairs):
            done += [
                replace(
                    once,
                    within=str(i),
                    count=once.count + examples * more.count,
                    flops=once.flops + examples * more.flops,
                    bytes=once.bytes + examples * more.bytes,
                )
            ]
        peak = fixed + examples * each
        return Trace(tuple(done), {"1": peak}, {"1: a": peak}, resident=fixed)

    assert extrapolated(of(1), of(2), batch) == of(batch)
    assert extrapolated(of(start), of(start + 1), batch, start) == of(batch)


def test_the_peak_is_that_of_the_module_with_the_most():
    trace = Trace(peaks={"1": 10, "2a": 30, "update": 20})
    assert (trace.peak, trace.peak_in) == (30, "2a")
    assert (Trace().peak, Trace().peak_in) == (0, "1")


def test_a_module_that_does_not_grow_makes_the_peak_of_small_batches_alone():
    found = [
        extrapolated(Trace(peaks={"1": 10, "update": 100}), Trace(peaks={"1": 20, "update": 100}), b) for b in (9, 50)
    ]
    assert [(trace.peak, trace.peak_in) for trace in found] == [(100, "update"), (500, "1")]


def test_sizes_of_one_operation_are_added_up_before_the_line_is_drawn():
    one = Trace((PRODUCT,))
    two = Trace((replace(PRODUCT, count=1, flops=30, bytes=10), replace(PRODUCT, count=3, flops=170, bytes=70)))
    assert extrapolated(one, two, 4).operations == (replace(PRODUCT, count=8, flops=400, bytes=160),)


def test_an_operation_that_only_more_examples_need_comes_with_them():
    found = extrapolated(Trace(), Trace((PRODUCT,)), 5)
    assert found.operations == (replace(PRODUCT, count=8, flops=400, bytes=160),)


@given(traces, traces, st.integers(1, 50))
def test_no_quantity_falls_below_zero(one, two, batch):
    found = extrapolated(one, two, batch)
    assert min([found.peak, found.resident, *found.alive.values()]) >= 0
    assert all(o.count > 0 and o.flops >= 0 and o.bytes >= 0 for o in found.operations)


@given(traces)
def test_json_and_back_is_the_same_trace(trace):
    assert decode(Trace, json.loads(json.dumps(asdict(trace))), "trace") == trace


def test_another_type_is_refused_where_it_stands():
    value = json.loads(json.dumps(asdict(TRACE)))
    value["operations"][1]["flops"] = "many"
    with pytest.raises(DpbenchError, match=r"trace\.operations\[1\]\.flops is 'many', expected int"):
        decode(Trace, value, "trace")


@pytest.mark.parametrize("module", ["trace", "roofline"])
def test_traces_are_read_without_torch(module):
    code = f"import sys, dpbench.complexity.{module}; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
