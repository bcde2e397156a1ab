from dataclasses import replace

import pytest

from dpbench.document.build import build
from dpbench.document.latex import latex
from dpbench.document.markdown import markdown
from dpbench.document.page import page
from dpbench.document.parts import Chart, Grid
from dpbench.errors import EmptySelection
from dpbench.records import Outcome, Traced
from tests.document.results_for_tests import LARGEST, OTHER, charts, file, reported, timed, wrong
from tests.records_for_tests import ENVIRONMENT, PARTIAL, record, sweep, workload

NASTY = "mine_&%$#{}~^\\<script>\"'|`*[x].py:build"


def both(on):
    return [timed("nonprivate", 1.0, on), timed("bk", 2.0, on)]


def all_refused():
    return [record(n, outcome=Outcome.REFUSED, reason="</script>\\end{tabular} $ `x` |") for n in ("nonprivate", "bk")]


CASES = {
    "no cells": [],
    "refusals": all_refused(),
    "out of memory": [record(n, outcome=Outcome.OUT_OF_MEMORY, reason="limit") for n in ("nonprivate", "bk")],
    "no baseline": [timed("bk", 1.0), timed("vmap", 2.0)],
    "wrong baseline": [wrong("nonprivate"), timed("bk", 1.0), timed("vmap", 2.0)],
    "huge ratios": [
        timed(n, s, memory=m) for n, s, m in (("nonprivate", 1e-7, 1), ("bk", 1e5, 1e15), ("vmap", 1e6, 2e15))
    ],
    "no memory": [timed(n, 1.0, memory=0.0) for n in ("nonprivate", "bk", "vmap")],
    "specials": [*both(workload(model=NASTY)), timed("my<impl>&_$.py", 2.0, workload(model=NASTY))],
    "unicode": [*both(workload(model="модель:蛇🐍(é=1)")), timed("vmap", 2.0, workload(model="модель:蛇🐍(é=1)"))],
    "largest": [replace(r, largest=7) for r in both(LARGEST)],
    "logical": both(workload(logical_batch=64)),
    "train": both(workload(step="train", optimizer="adamw")),
    "partial": [*both(workload()), timed("vmap", 1.0, coverage=PARTIAL)],
    "traced alone": [replace(record("bk"), metrics={}, traced=Traced(flops=1, bytes=1, peak=1))],
    "sweep": sweep(6),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_whatever_is_in_a_file_there_is_a_document_of_it(tmp_path, case):
    document = reported(tmp_path, *CASES[case])
    assert document.summary
    assert markdown(document)
    assert latex(document)
    assert page(document).startswith("<!")
    for section in document.sections:
        assert section.parts
        for part in section.parts:
            assert set(part.sources) <= {"A"}
            if isinstance(part, Chart):
                assert part.alt
                assert all(0 <= place < len(document.records) for place in part.records)
            if isinstance(part, Grid):
                assert {len(line) for line in part.lines} <= {len(part.columns)}
                places = [e.record for line in part.lines for e in line if e.record is not None]
                assert all(0 <= place < len(document.records) for place in places)


def test_an_entry_links_to_the_record_that_it_was_taken_from(tmp_path):
    records = sweep(6)
    document = reported(tmp_path, *records)
    speed = document.sections[0].parts[0]
    assert isinstance(speed, Grid)
    linked = {}
    for line in speed.lines:
        for column, entry in zip(speed.columns[2:], line[2:], strict=True):
            if entry.value is not None:
                taken = document.records[entry.record]
                assert taken.implementation == column.implementation
                assert taken.workload == line[0].text
                assert taken.figures["speed_relative"] == entry.value
                linked[entry.record] = entry
    bases = {r.cell.workload for r in records if r.cell.implementation == "nonprivate" and r.outcome is Outcome.OK}
    private = [i for i, r in enumerate(records) if r.cell.implementation != "nonprivate"]
    assert set(linked) == {i for i in private if records[i].outcome is Outcome.OK and records[i].cell.workload in bases}


def test_identifiers_are_unique(tmp_path):
    first = file(tmp_path / "a", sweep(6))
    second = file(tmp_path / "b", [replace(r, traced=Traced(flops=1, bytes=1, peak=1)) for r in sweep(6)], OTHER)
    parts = [part.id for section in build([first, second]).sections for part in section.parts]
    assert len(parts) == len(set(parts))


def test_panels_of_two_machines_are_apart(tmp_path):
    records = [timed("bk", 1.0, workload(batch=b)) for b in (1, 2)]
    document = build([file(tmp_path / "a", records), file(tmp_path / "b", records, OTHER)])
    (chart,) = [c for c in charts(document) if c.id == "throughput-vs-batch"]
    assert [axes.get_title(loc="left") for axes in chart.draw().axes] == [
        "transformers:gpt2\nA",
        "transformers:gpt2\nB",
    ]
    assert chart.sources == ("A", "B")


def test_two_sides_of_a_run_are_told_apart(tmp_path):
    sides = [
        file(tmp_path / n, [timed("bk", 1.0)], {**ENVIRONMENT, "side": {"name": n}}, run="r") for n in ("main", "tree")
    ]
    document = build(sides)
    assert [source.title for source in document.sources] == ["made-up (main)", "made-up (tree)"]
    assert any("see dpbench compare" in remark for remark in document.sources[1].remarks)


def test_the_head_says_what_there_is_and_what_was_asked_for(tmp_path):
    document = build([file(tmp_path, both(workload()))], "A title", "bk", "dpbench report x -k bk")
    assert document.title == "A title"
    assert "dpbench report x -k bk" in document.made
    assert document.facts["cells"] == "1 of 2 (-k bk)"
    assert document.facts["measured"] == "2030-01-01"
    with pytest.raises(EmptySelection):
        build([file(tmp_path / "b", both(workload()))], "", "vmap")


@pytest.mark.parametrize(("count", "named"), [(1, False), (2, True), (4, True), (5, False)])
def test_the_head_names_the_sources_where_they_are_few(tmp_path, count, named):
    document = build([file(tmp_path / f"{i}", [timed("bk", 1.0)], run=f"{i}") for i in range(count)])
    assert len(document.sources) == count
    assert ("sources" in document.facts) == named
