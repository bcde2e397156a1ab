from dataclasses import replace

from dpbench.document.largest import section
from dpbench.document.parts import Kind
from dpbench.records import Outcome
from tests.document.results_for_tests import LARGEST, column, of, timed, wrong
from tests.records_for_tests import PARTIAL, record


def largest(name, batch, **more):
    return replace(timed(name, 1.0, LARGEST, **more), largest=batch)


def test_bars_are_as_long_as_the_batches_and_words_say_why_there_is_none(tmp_path):
    oom = record("vmap", LARGEST, Outcome.OUT_OF_MEMORY, "one example needs 9 GB")
    found = section(of(tmp_path, largest("nonprivate", 64), largest("bk", 48), oom, wrong("ghostclip", LARGEST)))
    chart, grid = found.parts
    (axes,) = chart.draw().axes
    assert [bar.get_width() for bar in axes.patches] == [64, 48]
    assert [t.get_text() for t in axes.texts] == ["64", "OOM", "wrong", "48"]
    assert [e.text for e in column(grid, "bk")] == ["48 (0.75)"]
    assert [e.kind for e in column(grid, "bk")] == [Kind.BEST]
    assert [(e.text, e.note) for e in column(grid, "vmap")] == [("OOM", "one example needs 9 GB")]
    assert chart.records == (0, 1)


def test_a_batch_at_which_less_was_trained_is_hollow_and_not_the_best(tmp_path):
    found = section(of(tmp_path, largest("bk", 99, coverage=PARTIAL), largest("opacus", 9)))
    chart, grid = found.parts
    assert [bar.get_facecolor()[:3] == (1, 1, 1) for bar in chart.draw().axes[0].patches] == [False, True]
    assert [e.kind for e in column(grid, "bk")] == [Kind.PLAIN]


def test_a_file_where_nothing_fits_has_a_table_and_no_chart(tmp_path):
    found = section(of(tmp_path, record("bk", LARGEST, Outcome.OUT_OF_MEMORY, "no")))
    assert [part.id for part in found.parts] == ["largest"]


def test_of_batches_that_were_asked_for_there_is_no_such_section(tmp_path):
    assert section(of(tmp_path, record("bk"))) is None
