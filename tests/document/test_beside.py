import pytest

from dpbench.document.beside import section
from dpbench.document.build import build
from dpbench.document.parts import Kind
from dpbench.document.sources import material
from dpbench.records import Outcome
from tests.document.results_for_tests import LARGEST, OTHER, column, file, grid, of, reported, timed
from tests.records_for_tests import PARTIAL, record, workload


def test_ratios_with_intervals_and_the_baseline_as_it_is(tmp_path):
    document = reported(tmp_path, timed("nonprivate", 1.0), timed("bk", 2.0, memory=4e9), timed("vmap", 4.0))
    speed, memory = grid(document, "speed"), grid(document, "memory")
    assert [c.title for c in speed.columns] == ["workload", "nonprivate", "vmap", "bk"]
    (base,), (bk,) = column(speed, "nonprivate"), column(speed, "bk")
    assert base.value == pytest.approx(8 / 1.0025, rel=1e-5)
    assert (bk.text, bk.value, bk.kind, bk.record) == ("0.50 (0.50-0.50)", 0.5, Kind.BEST, 1)
    assert [e.kind for e in column(speed, "vmap")] == [Kind.PLAIN]
    assert [e.text for e in column(memory, "bk")] == ["2.00"]
    assert [e.text for e in column(memory, "nonprivate")] == ["2.00"]
    assert [e.kind for e in column(memory, "vmap")] == [Kind.BEST]


@pytest.mark.parametrize(
    ("outcome", "word", "kind"),
    [
        (Outcome.WRONG, "wrong", Kind.BAD),
        (Outcome.FAILED, "failed", Kind.BAD),
        (Outcome.TIMED_OUT, "timed out", Kind.BAD),
        (Outcome.REFUSED, "refused", Kind.MUTED),
        (Outcome.OUT_OF_MEMORY, "OOM", Kind.MUTED),
    ],
)
def test_what_has_no_figure_says_why(tmp_path, outcome, word, kind):
    document = reported(tmp_path, timed("nonprivate", 1.0), record("bk", outcome=outcome, reason="because"))
    (entry,) = column(grid(document, "speed"), "bk")
    assert (entry.text, entry.value, entry.kind, entry.note) == (word, None, kind, "because")


def test_a_figure_of_less_than_the_whole_work_is_marked_and_never_the_best(tmp_path):
    document = reported(
        tmp_path, timed("nonprivate", 1.0), timed("bk", 0.1, coverage=PARTIAL), timed("vmap", 4.0, memory=9e9)
    )
    for name in ("speed", "memory"):
        (entry,) = column(grid(document, name), "bk")
        assert entry.text.endswith("(88 % trained)")
        assert "cls_token" in entry.note
        assert entry.kind is Kind.PLAIN
        assert [e.kind for e in column(grid(document, name), "vmap")] == [Kind.BEST]


def test_without_a_baseline_figures_stand_as_they_are(tmp_path):
    document = reported(tmp_path, timed("bk", 2.0), timed("vmap", 4.0))
    found = grid(document, "throughput")
    assert [e.text for e in column(found, "bk")] == ["3.99"]
    assert any("no ratio is given" in note for note in found.notes)
    assert [e.text for e in column(grid(document, "gigabytes"), "bk")] == ["2.00"]


def test_workloads_with_and_without_a_baseline_do_not_share_a_table(tmp_path):
    document = reported(tmp_path, timed("nonprivate", 1.0), timed("bk", 2.0), timed("bk", 2.0, workload(batch=16)))
    assert [line[0].text for line in grid(document, "speed").lines] == ["transformers:gpt2 B=8"]
    assert [line[0].text for line in grid(document, "throughput").lines] == ["transformers:gpt2 B=16"]


def test_cells_that_were_not_run_say_so(tmp_path):
    results = file(tmp_path, [timed("nonprivate", 1.0)], cells=[record(n).cell for n in ("nonprivate", "bk")])
    (entry,) = column(grid(build([results]), "speed"), "bk")
    assert (entry.text, entry.kind) == ("not run", Kind.MUTED)


def test_the_same_cell_of_two_machines_stands_in_two_lines(tmp_path):
    first = file(tmp_path / "a", [timed("nonprivate", 1.0), timed("bk", 2.0)])
    second = file(tmp_path / "b", [timed("nonprivate", 1.0), timed("bk", 4.0)], OTHER)
    found = grid(build([first, second]), "speed")
    assert [e.text for e in column(found, "source")] == ["A", "B"]
    assert [e.value for e in column(found, "bk")] == [0.5, 0.25]
    assert found.sources == ("A", "B")


def test_at_the_largest_batch_memory_is_not_compared(tmp_path):
    document = reported(tmp_path, timed("nonprivate", 1.0, LARGEST), timed("bk", 2.0, LARGEST))
    found = {part.id for part in document.sections[0].parts}
    assert "memory" not in found


def test_a_trace_alone_has_no_such_section(tmp_path):
    from dataclasses import replace

    assert section(of(tmp_path, replace(record("bk"), metrics={}))) is None
    assert section(material([file(tmp_path / "none", [])])) is None


def test_too_few_rounds_for_an_interval_are_said(tmp_path):
    document = reported(tmp_path, record("nonprivate", seconds=[[1.0]] * 2), record("bk", seconds=[[2.0], [4.0]]))
    found = grid(document, "speed")
    assert [e.text for e in column(found, "bk")] == ["0.35 [0.25-0.50]"]
    assert any("no finding" in note for note in found.notes)
