import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.coverage import Coverage, NormMethod
from dpbench.errors import DpbenchError
from dpbench.records import (
    Cell,
    Metric,
    Outcome,
    Parity,
    Record,
    Roofline,
    Round,
    Traced,
    Workload,
    from_json,
    to_json,
)
from dpbench.state import State
from tests.records_for_tests import record

number = st.floats(allow_nan=False)
some_text = st.text(max_size=20)
workloads = st.builds(
    Workload,
    model=some_text,
    batch=st.integers(0, 10**6) | st.just("max"),
    logical_batch=st.none() | st.integers(1, 10**6),
    seq_len=st.none() | st.integers(1, 10**6),
    attention=st.none() | some_text,
    checkpointing=st.booleans(),
    loss_chunk=st.none() | st.integers(1, 10**6),
    max_norm=number,
)
records = st.builds(
    Record,
    cell=st.builds(Cell, some_text, workloads),
    outcome=st.sampled_from(list(Outcome)),
    reason=some_text,
    metrics=st.dictionaries(
        some_text,
        st.builds(Metric, some_text, st.lists(st.lists(number, max_size=3).map(tuple), max_size=3).map(tuple)),
        max_size=3,
    ),
    traced=st.none()
    | st.builds(
        Traced,
        flops=st.integers(0, 10**18),
        bytes=st.integers(0, 10**15),
        peak=st.integers(0, 10**12),
        modules=st.dictionaries(some_text, st.integers(0, 10**18), max_size=3),
        roofline=st.none() | st.builds(Roofline, some_text, number, number, number),
    ),
    parity=st.none() | st.builds(Parity, st.booleans(), number, number, some_text, some_text),
    coverage=st.none()
    | st.builds(
        Coverage,
        st.integers(0, 10**12),
        st.integers(0, 10**12),
        st.dictionaries(some_text, st.integers(0, 10**12), max_size=3),
        st.dictionaries(st.sampled_from(list(NormMethod)), st.integers(0, 10**12)),
    ),
    largest=st.none() | st.integers(1, 10**6),
    facts=st.dictionaries(some_text, st.none() | st.integers() | some_text, max_size=3),
    source=some_text,
)


@given(records)
def test_a_record_survives_json_on_one_line(made):
    text = to_json(made)
    assert "\n" not in text
    assert from_json(text) == made
    assert from_json(text).cell.key() == made.cell.key()


def test_of_the_state_of_a_round_only_what_is_known_is_written():
    states = (State(), State(load=0.5, throttled=()), State(throttled=("heat",)))
    made = replace(record(), rounds=tuple(Round(started=1.0, warm_up=2, settled=True, state=s) for s in states))
    written = [r["state"] for r in json.loads(to_json(made))["rounds"]]
    assert written == [{}, {"load": 0.5, "throttled": []}, {"throttled": ["heat"]}]
    assert from_json(to_json(made)) == made


def test_what_is_not_a_number_survives():
    made = replace(record(), parity=Parity(False, math.nan, 1e-8, "float64"))
    assert math.isnan(from_json(to_json(made)).parity.error)


def value_of(made):
    """As it is in a file, but for the checksum."""
    value = json.loads(to_json(made))
    del value["crc"]
    return value


def test_an_older_file_without_a_newer_field_is_read():
    value = value_of(record())
    del value["cell"]["workload"]["norm"], value["cell"]["workload"]["logical_batch"], value["largest"]
    read = from_json(json.dumps(value))
    del value["cell"]["workload"]["checkpointing"], value["cell"]["workload"]["loss_chunk"]
    assert from_json(json.dumps(value)) == read
    assert (read.cell.workload.checkpointing, read.cell.workload.loss_chunk) == (False, None)
    assert (read.cell.workload.norm, read.cell.workload.logical_batch, read.batch) == (None, None, 8)


def of_schema_1(coverage, facts):
    """As it was written when coverage was a share."""
    value = {**value_of(record()), "schema": 1, "coverage": coverage, "facts": facts}
    return json.dumps(value)


@pytest.mark.parametrize(
    ("coverage", "facts", "expected"),
    [
        (1.0, {"trainable": 124}, Coverage(124, 124)),
        (31 / 66, {"trainable": 66}, Coverage(66, 31)),
        (1.0, {}, None),
        (None, {"trainable": 124}, None),
    ],
)
def test_a_record_of_schema_1_is_read_and_written_as_one_of_today(coverage, facts, expected):
    read = from_json(of_schema_1(coverage, facts))
    assert read.coverage == expected
    assert read == replace(record(), coverage=expected, facts=facts)
    assert from_json(to_json(read)) == read


@pytest.mark.parametrize("schema", [2, 3])
def test_what_later_schemas_added_is_not_there_in_records_of_earlier_ones(schema):
    counted = replace(record(), traced=Traced(flops=9, bytes=8, peak=7) if schema == 3 else None)
    value = {**value_of(counted), "schema": schema}
    if schema == 3:
        del value["traced"]["roofline"]
    else:
        del value["traced"], value["rounds"], value["metrics"]["step_seconds"]["at"]
    assert from_json(json.dumps(value)) == counted


def test_a_coverage_that_is_neither_is_said_by_name():
    with pytest.raises(DpbenchError, match="record.coverage is {'asked': 3}, expected float"):
        from_json(of_schema_1({"asked": 3}, {}))
    with pytest.raises(DpbenchError, match="record.coverage is 1.0, expected Coverage"):
        from_json(changed(["coverage"], 1.0))
    with pytest.raises(DpbenchError, match="record.coverage.trained is missing"):
        from_json(changed(["coverage"], {"asked": 3}))


def test_a_record_knows_its_batch_and_the_examples_of_a_step():
    def of(largest=None, **axes):
        made = replace(record(on=Workload(model="m", **axes)), largest=largest)
        return made.batch, made.examples

    assert of(batch=8) == (8, 8)
    assert of(batch=8, logical_batch=20) == (8, 20)
    assert of(39, batch="max") == (39, 39)
    assert of(39, batch="max", logical_batch=256) == (39, 256)
    assert of(None, batch="max") == (None, None)


def test_a_batch_that_is_max_is_no_number():
    assert Workload(model="m", batch=3).physical == 3
    with pytest.raises(DpbenchError, match="batch is 'max', expected a number here: dpbench run alone finds it"):
        Workload(model="m", batch="max").physical  # noqa: B018


def changed(path, new):
    value = value_of(record())
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return json.dumps(value)


def without(name):
    value = value_of(record())
    del value[name]
    return json.dumps(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a record of dpbench"),
        (to_json(record()).replace("8", "9", 1), "it is not as it was written: its checksum is another"),
        ("[1]", r"record is \[1\], expected Record"),
        (changed(["schema"], 7), "written by a newer dpbench, schema 7; this reads up to 4; upgrade"),
        (changed(["schema"], "1"), "schema is '1'"),
        (without("schema"), "schema is None"),
        (without("cell"), "record.cell is missing"),
        (
            changed(["cell", "workload", "batsh"], 3),
            "unknown field of record.cell.workload 'batsh'. Did you mean batch",
        ),
        (changed(["cell", "workload", "batch"], "8"), "record.cell.workload.batch is '8', expected int"),
        (changed(["cell", "workload", "batch"], "most"), "record.cell.workload.batch is 'most', expected int"),
        (changed(["cell", "workload", "batch"], None), "batch is None, expected int"),
        (changed(["cell", "workload", "batch"], True), "batch is True, expected int"),
        (changed(["outcome"], "okay"), "unknown record.outcome 'okay'. Did you mean ok"),
        (
            changed(["metrics", "resident", "samples"], [[1, "fast"]]),
            r"resident.samples\[0\]\[1\] is 'fast'",
        ),
    ],
)
def test_what_cannot_be_read_is_said_by_name(text, message):
    with pytest.raises(DpbenchError, match=message):
        from_json(text)
