"""A wrong gradient never appears as a speed, wherever a report could say one."""

import io

import pytest

from dpbench.document.markdown import markdown
from dpbench.document.page import page
from dpbench.document.parts import Grid, Kind
from dpbench.records import Outcome
from tests.document.results_for_tests import LARGEST, charts, column, grid, reported, timed, wrong
from tests.records_for_tests import workload

FIGURES = ("987654", "987,654", "1e-09", "1.0e-09", "1.0e-12")


def records():
    found = []
    for batch in (4, 8):
        on = workload(batch=batch)
        found += [timed("nonprivate", 0.5, on), wrong("ghostclip", on), timed("bk", 0.6, on), timed("opacus", 0.9, on)]
    return [*found, timed("nonprivate", 0.5, LARGEST), wrong("ghostclip", LARGEST), timed("bk", 0.6, LARGEST)]


@pytest.fixture
def document(tmp_path):
    return reported(tmp_path, *records())


@pytest.mark.parametrize("name", ["speed", "memory", "largest"])
def test_in_no_table(document, name):
    entries = column(grid(document, name), "ghostclip")
    assert entries
    assert {(e.text, e.value, e.kind) for e in entries} == {("wrong", None, Kind.BAD)}
    assert {e.note for e in entries} == {"wte.weight differs by 0.13"}


def test_in_no_table_of_predictions(document):
    for section in document.sections:
        if section.id == "predicted":
            for part in section.parts:
                if isinstance(part, Grid):
                    assert "ghostclip" not in {e.text for line in part.lines for e in line}


def test_in_no_chart(document):
    place = [i for i, r in enumerate(document.records) if r.implementation == "ghostclip"]
    for chart in charts(document):
        figure = chart.draw()
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
        assert not any(text in drawn.getvalue() for text in FIGURES)
        for axes in figure.axes:
            for line in axes.lines:
                assert all(y != y or y > 1e-6 for y in map(float, line.get_ydata()))
        if chart.id in ("time-against-memory", "largest-batch"):
            assert not set(place) & set(chart.records)


def test_in_no_sentence_but_the_one_that_calls_it_wrong(document):
    said = [s for s in document.summary if "ghostclip" in s]
    assert len(said) == 1
    assert said[0] == document.summary[0]
    assert "wrong gradient" in said[0]
    assert "wte.weight differs by 0.13" in said[0]


def test_in_no_figure_of_its_record(document):
    for taken in document.records:
        if taken.outcome == Outcome.WRONG:
            assert not {"seconds", "examples_per_s", "speed_relative", "memory", "memory_relative"} & set(taken.figures)


def test_nothing_is_compared_with_a_wrong_baseline(tmp_path):
    document = reported(tmp_path, wrong("nonprivate"), timed("bk", 0.6), timed("opacus", 0.9))
    assert not any("non-private training" in sentence for sentence in document.summary)
    assert [e.text for e in column(grid(document, "throughput"), "nonprivate")] == ["wrong"]
    assert "speed_relative" not in document.records[1].figures


def test_in_no_format(document):
    assert "1e-09" not in markdown(document).replace("1e-08", "")
    assert not any(speed in page(document) for speed in ("1e-09", "7980000000", "4000000000"))
