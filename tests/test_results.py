import gc
import json
import re
from dataclasses import replace

import pytest

from dpbench.coverage import Coverage
from dpbench.errors import DpbenchError
from dpbench.records import SCHEMA, Parity, Traced, to_json
from dpbench.results import read
from tests.records_for_tests import ENVIRONMENT, record, sweep, workload, write


def test_what_was_written_is_read(tmp_path):
    made = [replace(r, environment=ENVIRONMENT) for r in sweep()]
    results = read(write(tmp_path, made))
    assert list(results.records) == made
    assert results.header.cells == tuple(r.cell for r in made)
    assert (results.missing, results.torn) == ((), "")


def test_the_environment_is_there_once(tmp_path):
    results = read(write(tmp_path, [replace(record(name), environment=ENVIRONMENT) for name in ("bk", "vmap")]))
    assert all(r.environment is results.header.environment for r in results.records)
    assert results.header.environment == ENVIRONMENT


def test_a_record_with_an_environment_of_its_own_keeps_it(tmp_path):
    results = read(write(tmp_path, [replace(record(), environment={"machine": {"id": "m2"}})]))
    assert results.records[0].environment == {"machine": {"id": "m2"}}


def unsealed(text):
    """Without checksums, as whoever edits a file by hand has to leave it."""
    return re.sub(r',"crc":"[0-9a-f]{8}"', "", text)


def with_line(path, line):
    with path.open("a") as file:
        file.write(line + "\n")
    return path


def test_numbers_that_are_not_finite_are_read_among_others(tmp_path):
    odd = replace(record("vmap"), parity=Parity(False, float("inf"), 1e-8, "float64"), environment=ENVIRONMENT)
    results = read(write(tmp_path, [replace(record(), environment=ENVIRONMENT), odd]))
    assert results.records[1] == odd


def test_records_of_older_schemas_are_read_among_others(tmp_path):
    path = write(tmp_path, [record("bk")])
    first = {**json.loads(unsealed(to_json(record("vmap")))), "schema": 1, "coverage": 1.0}
    second = {**json.loads(unsealed(to_json(record("opacus")))), "schema": 2}
    counted = replace(record("ghostclip"), traced=Traced(flops=9, bytes=8, peak=7))
    third = {**json.loads(unsealed(to_json(counted))), "schema": 3}
    del third["traced"]["roofline"]
    for value in (first, second, third):
        with_line(path, json.dumps(value))
    made = {r.cell.implementation: r for r in read(path).records}
    assert made["vmap"] == replace(record("vmap"), coverage=Coverage(124_000_000, 124_000_000))
    assert (made["opacus"], made["ghostclip"]) == (record("opacus"), counted)
    assert {r.schema for r in made.values()} == {SCHEMA}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"outcome":"ok"', '"outcome":"okay"', "line 2: unknown record.outcome 'okay'. Did you mean ok"),
        ('"schema":4', '"schema":5', "line 2: written by a newer dpbench, schema 5"),
        (',"schema":4', "", "line 2: not written by dpbench: schema is None"),
        ('"batch":8', '"batch":"8"', "line 2: record.cell.workload.batch is '8', expected int"),
        ('"batch":8', '"batch":8,"batsh":8', "line 2: unknown field of record.cell.workload 'batsh'"),
        ('"batch":8', '"batch":8,,', "line 2: not a record of dpbench"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path, old, new, message):
    path = write(tmp_path, [record()])
    header, line, end = unsealed(path.read_text()).split("\n")
    assert old in line
    path.write_text("\n".join([header, line.replace(old, new), line, end]))
    with pytest.raises(DpbenchError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"kind":"header"', '"kind":"head"', "line 1: not a results file of dpbench"),
        ('"dpbench":4', '"dpbench":5', "line 1: written by a newer dpbench"),
        ('"suite":', '"suit":', "line 1: unknown field of header 'suit'. Did you mean suite"),
    ],
)
def test_a_header_that_cannot_be_read_is_said(tmp_path, old, new, message):
    path = write(tmp_path, [record()])
    path.write_text(unsealed(path.read_text()).replace(old, new, 1))
    with pytest.raises(DpbenchError, match=message):
        read(path)


@pytest.mark.parametrize("schema", [1, 2, 3])
def test_a_header_of_an_older_schema_is_read(tmp_path, schema):
    path = write(tmp_path, [record(on=workload(batch=2))])
    now = read(path)
    path.write_text(unsealed(path.read_text()).replace('"dpbench":4', f'"dpbench":{schema}', 1))
    assert (read(path).header, read(path).records) == (now.header, now.records)


def test_of_a_cell_that_was_run_twice_the_later_record_counts(tmp_path):
    path = write(tmp_path, [record(memory=1e9), record("vmap"), record(memory=2e9)])
    assert read(path).records == (record("vmap"), record(memory=2e9))


def test_each_record_has_its_line_and_the_file_its_schema(tmp_path):
    path = write(tmp_path, [record("bk"), record("vmap"), record("opacus")])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[1]]))
    results = read(path)
    found = zip((r.cell.implementation for r in results.records), results.lines, strict=True)
    assert list(found) == [("vmap", 3), ("opacus", 4), ("bk", 5)]
    assert results.replaced == 1
    path.write_text(unsealed(lines[0]).replace(f'"dpbench":{SCHEMA}', '"dpbench":2', 1))
    empty = read(path)
    assert (empty.lines, empty.replaced, empty.schema) == ((), 0, 2)


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_afterwards_as_before(tmp_path, collecting):
    path = write(tmp_path, [record()])
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    (gc.enable if collecting else gc.disable)()
    try:
        read(path)
        assert gc.isenabled() == collecting
        with pytest.raises(DpbenchError):
            read(broken)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


@pytest.mark.parametrize("schema", [2, 3])
def test_records_of_schemas_that_lack_fields_alone_are_read_as_fast_as_those_of_today(tmp_path, monkeypatch, schema):
    path = write(tmp_path, [record()])
    older = path.read_text().replace('"dpbench":4', f'"dpbench":{schema}').replace('"schema":4', f'"schema":{schema}')
    path.write_text(unsealed(older))
    monkeypatch.setattr("dpbench.results.from_json", lambda *_: pytest.fail("it is decoded in Python"))
    monkeypatch.setattr("dpbench.results.decode", lambda *_: pytest.fail("it is decoded in Python"))
    assert read(path).records == (record(),)


@pytest.mark.parametrize("sample", ["NaN", "Infinity", "-1.0", "0.0", "1e300"])
def test_what_no_clock_measures_is_refused_with_its_line(tmp_path, sample):
    path = write(tmp_path, [record("bk", seconds=[[0.5]])])
    path.write_text(unsealed(path.read_text()).replace("0.5", sample))
    with pytest.raises(DpbenchError, match="line 2: step_seconds of bk holds .*, expected s above 0 and below 1e\\+18"):
        read(path)
