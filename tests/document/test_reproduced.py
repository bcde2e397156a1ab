"""Reproduced figures in a report: words and no numbers, reasons beside differences, and what is left out."""

from dataclasses import replace

import pytest

from dpbench.document.build import build
from dpbench.document.parts import Chart, Grid, Kind
from dpbench.document.reproduced import sections, sentences
from dpbench.reproduction import Value
from dpbench.results import read
from tests.document.results_for_tests import column
from tests.records_for_tests import record, write
from tests.reporting.test_reproduction import three, value
from tests.test_reproduction import figure, reproduction


def grid(*values, **more):
    (section,) = sections(reproduction(figure(*values, **more)), {}, {})
    (found,) = [part for part in section.parts if isinstance(part, Grid)]
    return found


def test_a_word_is_never_a_number():
    words = ("wrong: by 0.1", "refused: r", "failed: r", "timed out: r", "not all parameters trained: a", "oom")
    made = grid(*(value(f"impl{i}", (None, 1.0, word), (None, 1.0, word)) for i, word in enumerate(words)))
    for title in ("measured", "ratio measured"):
        entries = column(made, title)
        assert [e.text for e in entries] == [word.partition(":")[0] for word in words]
        assert all(e.value is None and e.kind is Kind.MUTED for e in entries)
    assert column(made, "measured")[0].note == "by 0.1"


def test_a_reason_stands_beside_a_difference_or_that_none_is_known():
    off = column(
        grid(
            replace(value("bk"), absolute=three(100.0, 150.0, reason="Because.", sure="found")),
            value("opacus", (100.0, 50.0)),
            value("vmap", (100.0, 110.0)),
        ),
        "off",
    )
    assert [e.note for e in off] == ["Because. [found]", "no reason is known", ""]
    assert [e.kind is Kind.BAD for e in off] == [False, True, False]
    assert [e.text for e in off] == ["+50%", "-50%", "+10%"]


def test_a_ratio_and_its_number_have_reasons_of_their_own():
    made = grid(
        Value(
            row="r",
            quantity="throughput",
            unit="examples/s",
            implementation="bk",
            absolute=three(100.0, 150.0, reason="A bound.", sure="in part"),
            ratio=three(0.8, 0.81),
        )
    )
    assert [(c.title, e.note) for c, e in zip(made.columns, made.lines[0], strict=True) if c.title.endswith("off")] == [
        ("off", "A bound. [in part]"),
        ("ratio off", ""),
    ]


def test_the_base_of_ratios_is_named_where_all_have_the_same():
    both = [value("bk", (), (0.8, 0.9)), value("bk", (), (1.3, 1.4), relative_to="ghostclip")]
    assert {c.unit for c in grid(both[0]).columns if c.title == "ratio published"} == {"to nonprivate"}
    assert {c.unit for c in grid(*both).columns if c.title == "ratio published"} == {""}


def test_what_is_known_and_what_was_left_out_is_said():
    known = {"precision": "not stated"}
    (section,) = sections(reproduction(figure(value(), known=known, left_out=("s: B=64 (slow)",))), {}, {})
    assert "Precision: not stated." in section.remarks
    assert "Left out: s: B=64 (slow)." in section.remarks


@pytest.mark.parametrize("kind", ["cost", "decisions"])
def test_charts_can_be_drawn(kind):
    layers = {"m px=224": (("conv", 49, 27, 64), ("fc", 1, 64, 10))} if kind == "decisions" else {}
    made = reproduction(figure(value("bk", (80.0, 90.0), (0.8, 0.9)), kind=kind, layers=layers))
    (section,) = sections(made, {}, {})
    drawn = [part for part in section.parts if isinstance(part, Chart)]
    assert drawn
    assert all(chart.draw().axes for chart in drawn)


def test_tables_name_the_results_that_they_are_from(tmp_path):
    path = write(tmp_path, [record("bk")])
    given = record("bk")
    where = {"file": path.name, "cell": given.cell.workload.label()}
    made = reproduction(figure(value("bk", (80.0, 90.0, 70.0), **where), files=(path.name,)))
    document = build([read(path)], reproduction=made)
    (found,) = [p for s in document.sections for p in s.parts if getattr(p, "id", "") == "paper-one-throughput"][-1:]
    assert found.sources == ("A",)
    assert [entry.record for entry in column(found, "measured")] == [0]
    assert next(p for s in document.sections for p in s.parts if isinstance(p, Chart)).records == (0,)
    assert document.title == "Reproduced: p"


def test_without_results_there_is_a_report_all_the_same():
    document = build([], reproduction=reproduction(figure(value("bk", (80.0, 90.0)))))
    assert document.sections[0].id == "paper-one"
    assert document.summary[0] == "Of C: 1 of 2 figures are reproduced."
    assert not any("No cell" in sentence for sentence in document.summary)
    assert sentences(reproduction()) == ["Of C: 0 of 2 figures are reproduced."]


def test_the_summary_leads_with_how_near_predictions_come_and_why_not_nearer():
    far = replace(value("opacus"), absolute=three(100.0, 120.0, reason="r", sure="open"))
    made = reproduction(
        figure(value("bk", (100.0, 105.0)), far),
        figure(value("bk", (100.0, 150.0), (0.8, 0.81), row="r B=9", sizes={"B": 9}), id="two", title="Second"),
        figure(value("bk", (None, 1.0)), id="ours", title="Not printed"),
    )
    assert sentences(made) == [
        "Of C: 3 of 2 figures are reproduced.",
        "Throughput, predicted within 10 % and 25 %: 1 and 1 of 1 ratios, and 1 and 2 of 3 numbers.",
        "2 numbers and ratios are more than 15 % apart; why: 1 open, 1 without a reason.",
    ]


def test_beside_a_reproduction_of_its_own_results_warnings_alone_are_told(tmp_path):
    layers = [["conv", 100, 3, 64], ["head", 1, 64, 10]]
    few = [replace(record("nonprivate", seconds=[[1.0]]), facts={"layers": layers}), record("bk", seconds=[[2.0]])]
    path, other = write(tmp_path, few), write(tmp_path / "other", few)
    made = reproduction(figure(value("bk", (80.0, 90.0)), files=(path.name,)))
    document = build([read(path)], reproduction=made)
    assert document.summary[-2:] == (
        "2 cells: 2 ok.",
        "2 cells have as few as 1 round: an interval needs 6, and differences between such cells are not claimed.",
    )
    assert not any("private" in sentence for sentence in document.summary)
    assert "layers" not in [section.id for section in document.sections]
    # Results of a run of its own keep their findings.
    both = build([read(path), read(other.rename(tmp_path / "other.jsonl"))], reproduction=made)
    assert next(s for s in both.summary if "the only private" in s).startswith("On B: ")
    assert "layers" in [section.id for section in both.sections]


def test_what_was_measured_at_a_reduced_size_says_so_in_the_head_of_its_column():
    full = grid(value("bk", (1.0, 1.0, 5.0)))
    reduced = grid(value("bk", (1.0, 1.0, 5.0), (1.0, 1.0, 0.5), at="gpt2 B=2"))
    assert [c.unit for c in full.columns if c.title == "measured"] == ["examples/s"]
    assert [c.unit for c in reduced.columns if c.title.endswith("measured")] == [
        "examples/s, reduced size",
        "to nonprivate, reduced size",
    ]


def test_of_many_networks_the_table_comes_before_the_charts():
    layers = {"m px=224": (("conv", 49, 27, 64),)}
    made = reproduction(figure(value("2T^2 < pd", (9.0, 11.0)), kind="decisions", layers=layers))
    (section,) = sections(made, {}, {})
    assert [type(part) for part in section.parts] == [Grid, Chart]
