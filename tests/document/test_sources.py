import json

import pytest

from dpbench.checksum import sealed, unsealed
from dpbench.document.sources import machine, material, sources
from dpbench.errors import EmptySelection
from dpbench.results import read
from tests.document.results_for_tests import OTHER, file, timed
from tests.records_for_tests import ENVIRONMENT, record, workload


def remarks(*files):
    return [" / ".join(source.remarks) for source in material(files).sources]


def test_files_have_letters_and_rows_know_theirs(tmp_path):
    found = material([file(tmp_path / str(i), [record()]) for i in range(28)])
    assert [source.id for source in found.sources][:2] == ["A", "B"]
    assert [source.id for source in found.sources][25:] == ["Z", "AA", "AB"]
    assert [row.file for row in found.rows] == [source.id for source in found.sources]


def test_a_record_says_where_it_stands_in_its_file(tmp_path):
    records = [record("nonprivate"), record("bk"), record("opacus")]
    found = material([file(tmp_path, records)])
    taken = found.taken()
    lines = (tmp_path / "made-up-20300101T020000Z.jsonl").read_text().splitlines()
    for one in taken:
        assert json.loads(unsealed(lines[one.line - 1].encode()))["cell"]["implementation"] == one.implementation
    assert [found.place(row) for row in found.rows] == [0, 1, 2]


def test_of_a_cell_that_was_run_again_the_later_line_counts_and_it_is_said(tmp_path):
    results = file(tmp_path, [record("bk"), record("opacus")])
    lines = results.path.read_text().splitlines(keepends=True)
    results.path.write_text("".join([*lines, lines[1]]))
    again = read(results.path)
    assert [taken.line for taken in material([again]).taken()] == [3, 4]
    assert remarks(again) == ["1 records are of cells that were run again: the later record counts"]


def test_an_older_schema_is_said(tmp_path):
    results = file(tmp_path, [record("bk")])
    header, one = (json.loads(unsealed(line)) for line in results.path.read_bytes().splitlines())
    header["dpbench"] = 1
    for new in ("rounds", "traced"):
        del one[new]
    one |= {"schema": 1, "coverage": 1.0}
    for metric in one["metrics"].values():
        del metric["at"]
    results.path.write_text("\n".join([sealed(json.dumps(header)), sealed(json.dumps(one)), ""]))
    assert remarks(read(results.path))[0].startswith("written in schema 1, which does not tell: ")


def test_a_torn_line_and_missing_cells_are_said(tmp_path):
    cells = [record(name).cell for name in ("bk", "opacus", "vmap", "ghostclip", "nonprivate")]
    results = file(tmp_path, [record("bk")], cells=cells)
    with results.path.open("a") as torn:
        torn.write('{"cell":')
    found = material([read(results.path)])
    assert "line 3: incomplete" in found.sources[0].remarks[0]
    assert found.sources[0].remarks[1] == (
        "4 of 5 cells were not run: opacus on transformers:gpt2 B=8, vmap on transformers:gpt2 B=8, ghostclip on "
        "transformers:gpt2 B=8 and 1 more"
    )
    assert found.sources[0].missing == len(found.missing) == 4


def test_another_machine_and_the_same_cells_are_said_of_the_later_file(tmp_path):
    first, second = file(tmp_path / "a", [record()]), file(tmp_path / "b", [record()], OTHER)
    said = remarks(first, second)
    assert said[0] == ""
    assert "of another machine than A: cpu made up -> another; figures of the two are not compared" in said[1]
    assert "other software or settings than A: torch 2.9.0 -> 2.10.0" in said[1]
    assert "1 of its cells are in A, too: both are shown, apart" in said[1]
    assert len(material([first, second]).rows) == 2


def test_sides_of_one_run_are_said_to_be(tmp_path):
    side = {**ENVIRONMENT, "side": {"name": "HEAD~1"}}
    first, second = (file(tmp_path / n, [record()], side, run="r") for n in "ab")
    assert remarks(first, second)[1] == "a side of the same run as A, timed in turns with it: see dpbench compare"
    assert material([first]).sources[0].title == "made-up (HEAD~1)"


def test_ratios_stay_when_the_baseline_is_not_asked_for(tmp_path):
    results = file(tmp_path, [timed("nonprivate", 1.0), timed("bk", 2.0)])
    found = material([results], "bk")
    assert [row.implementation for row in found.rows] == ["bk"]
    assert found.rows[0].speed_relative == pytest.approx(0.5)
    assert found.place(found.rows[0].baseline) is None
    assert found.of == 2


def test_an_empty_selection_says_what_there_was(tmp_path):
    with pytest.raises(EmptySelection, match="matches none of 1 cells. Implementations: bk"):
        material([file(tmp_path, [record("bk")])], "opacus")
    with pytest.raises(EmptySelection, match="hold no cell at all"):
        material([file(tmp_path / "none", [])], "opacus")


def test_a_file_without_a_record_says_so(tmp_path):
    assert remarks(file(tmp_path, [])) == ["there is no record in it"]


def test_records_that_were_taken_elsewhere_are_said(tmp_path):
    from dataclasses import replace

    results = file(tmp_path, [record("bk"), replace(record("opacus"), environment=OTHER)])
    assert "1 records were taken elsewhere than the file says: cpu made up -> another" in remarks(results)[0]


def test_a_machine_in_one_line():
    assert machine(OTHER) == "another, 8 cores, 64 GiB, 2 x H100"
    assert machine({}) == "unknown"


def test_figures_have_six_digits_and_no_defaults(tmp_path):
    on = workload(precision="bf16")
    taken = material([file(tmp_path, [timed("bk", 1 / 3, on, memory=2e9)])]).taken()[0]
    assert taken.figures["seconds"] == pytest.approx(1 / 3 * 1.0025, rel=1e-5)
    assert len(repr(taken.figures["seconds"])) <= 8
    assert taken.figures["memory"] == 2_000_000_000
    assert taken.figures["precision"] == "bf16"
    assert not {"step", "optimizer", "seed", "seq_len", "file"} & set(taken.figures)


def test_without_a_source_the_others_keep_their_names_and_lines(tmp_path):
    cells = [record("bk").cell, record("vmap").cell]
    files = [file(tmp_path / name, [record("bk")], cells=cells) for name in "ab"]
    every = material(files)
    left = every.without({"A"})
    assert [row.file for row in left.rows] == ["B"]
    assert [source for source, _ in left.missing] == ["B"]
    assert (left.sources, left.several, left.lines) == (every.sources, True, (2,))
    assert [taken.source for taken in left.taken()] == ["B"]


def test_sources_are_named_once_and_in_their_order():
    assert sources(["B"]) == "Source B"
    assert sources(["AA", "B", "A", "B"]) == "Sources A, B, AA"
