"""Dots of reproduced figures: words in their places, one axis, joined at full size alone, and a key that is true."""

from itertools import pairwise

import pytest

from dpbench.document.dots import LOGARITHMIC_FROM, MOST_ROWS, PALE, TITLE, drawn
from dpbench.document.marks import EXPECTED, PREDICTED, PUBLISHED, REDUCED
from dpbench.reproduction import Number
from tests.document.test_sizes import over, words
from tests.reporting.test_reproduction import value
from tests.test_reproduction import figure


def panels(*values, quantity="throughput", **more):
    return drawn(figure(**more), quantity, values).draw().axes


def marks(axes):
    """The numbers that are drawn, by marker and size."""
    return {
        (str(line.get_marker()), line.get_markersize()): line.get_xdata()[0]
        for line in axes.lines
        if line.get_marker() != "None" and line.get_transform() == axes.transData
    }


def mark(of):
    return str(of.shape), of.size


def joined(axes):
    return [sorted(line.get_xdata()) for line in axes.lines if line.get_color() == PALE and len(line.get_xdata()) == 2]


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_lines_where_one_size_varies():
    assert "against B" in drawn(figure(), "throughput", over([1, 2, 4])).caption


def test_ratios_with_a_key_that_says_what_the_caption_says():
    found = drawn(figure(), "throughput", [value("nonprivate", (100.0, 90.0)), value("bk", (80.0,), (0.8, 1.0, 0.9))])
    assert found.caption == "throughput, ratio to nonprivate: published, predicted for T4, measured here"
    chart = found.draw()
    assert sorted(marks(chart.axes[0]).values()) == [0.8, 0.9, 1.0]
    assert [text.get_text() for text in chart.legends[0].texts] == ["published", "predicted for T4", "measured here"]


def test_flops_are_by_formula_and_traced_in_key_and_caption():
    given = value("bk", (6.0, 6.0, 6.1), quantity="flops", unit="BTpd")
    found = drawn(figure(kind="complexity"), "flops", [given])
    assert found.caption == "FLOPs, BTpd: published, by formula, traced"
    assert [text.get_text() for text in found.draw().legends[0].texts] == ["published", "by formula", "traced"]


def test_out_of_memory_is_written_in_the_row_and_the_row_is_kept():
    values = [value("bk", (8.0, 9.0), (0.8, 0.9)), value("opacus", ("oom", "oom"), ("oom", "oom"))]
    found = drawn(figure(), "throughput", values)
    (axes,) = found.draw().axes
    assert names(axes) == ["bk", "opacus"]
    assert [(text.get_text(), text.xy[1]) for text in axes.texts] == [("OOM", 1)]
    assert found.caption.endswith("; OOM: out of memory")


def test_words_of_published_and_predicted_stand_apart_where_they_differ():
    bound, both, one = value("a", (), (">=7", "oom")), value("b", (), ("oom", "oom")), value("c", (), ("oom", 0.5))
    (axes,) = panels(bound, both, one)
    assert words(axes) == ["≥7", "OOM", "OOM", "OOM"]
    # Each behind the marks that it stands for: one each, both, one.
    beside = [line for line in axes.lines if line.get_transform() != axes.transData and line.get_marker() != "None"]
    assert [line.get_ydata()[0] for line in beside] == [0, 0, 1, 1, 2]
    assert marks(axes) == {mark(PREDICTED): 0.5}


def test_every_word_that_is_no_number_is_written_without_its_reason():
    (axes,) = panels(value("bk", (8.0, 9.0), (0.8, 0.9, "refused: a long reason")))
    assert words(axes) == ["refused"]


def test_workloads_of_words_alone_have_their_panel():
    found = panels(value("bk", (), (0.8, 0.9), row="m B=1"), value("bk", (), ("oom", "oom"), row="m B=2"))
    assert [axes.get_title(loc="left") for axes in found] == ["m\nB=1", "m\nB=2"]


def test_published_and_predicted_are_joined_and_nothing_at_a_reduced_size():
    given = value("bk", (), (0.5, 0.6, 0.9), at="B=2", expected_here=Number(0.8))
    found = drawn(figure(), "throughput", [given])
    (axes,) = found.draw().axes
    assert joined(axes) == [[0.5, 0.6], [1, 1]] or joined(axes) == [[1, 1], [0.5, 0.6]]
    expected = {PUBLISHED: 0.5, PREDICTED: 0.6, EXPECTED: 0.8, REDUCED: 0.9}
    assert marks(axes) == {mark(of): x for of, x in expected.items()}
    assert found.caption.endswith("expected here, at a reduced size, measured here, at a reduced size")


def test_numbers_at_a_reduced_size_are_left_to_the_table_and_that_is_said():
    found = drawn(figure(), "memory", [value("bk", (2.5, 2.4, 0.1), at="B=2", quantity="memory", unit="GB")])
    assert marks(found.draw().axes[0]).keys() == {mark(PUBLISHED), mark(PREDICTED)}
    assert found.caption.endswith("; what was measured at a reduced size is in the table")


def test_what_was_published_without_a_ratio_is_drawn_as_it_is():
    values = [value("bk", (2.5, 2.4), (None, 3.0)), value("ghostclip", (">40", 2.4), (None, 3.0))]
    found = drawn(figure(), "memory", values)
    assert found.caption.startswith("memory, examples/s: published")
    assert words(found.draw().axes[0]) == [">40"]


@pytest.mark.parametrize(("least", "scale"), [(1.0 / (LOGARITHMIC_FROM - 1), "linear"), (1.0 / 21, "log")])
def test_a_wide_range_is_logarithmic(least, scale):
    (axes,) = panels(value("bk", (), (least, 1.0)))
    assert axes.get_xscale() == scale
    low, high = axes.get_xlim()
    assert low <= least < 1 < high
    assert scale == "log" or low == 0


def test_panels_share_their_axis():
    first, second = panels(value("bk", (), (0.5, 0.6), row="m B=1"), value("bk", (), (7.0, 6.0), row="m B=2"))
    assert first.get_xlim() == second.get_xlim()


def test_numbers_of_nothing_are_drawn_from_zero():
    (axes,) = panels(value("bk", (0.0, 0.0)))
    assert axes.get_xlim()[0] == 0 < axes.get_xlim()[1]


def test_ratios_to_something_else_are_named():
    values = [value("bk", (), (0.8, 0.9)), value("bk", (), (1.4, 1.5), relative_to="ghostclip")]
    found = drawn(figure(), "throughput", values)
    assert found.caption.startswith("throughput, ratio to nonprivate, or as named: ")
    assert names(found.draw().axes[0]) == ["bk", "bk / ghostclip"]


def test_names_that_are_the_same_in_every_panel_stand_once():
    values = [value(name, (), (0.8, 0.9), row=row) for row in ("m B=1", "m B=2") for name in ("bk", "opacus")]
    told = [axes.yaxis.get_tick_params()["labelleft"] for axes in panels(*values)]
    assert told == [True, False]
    other = [axes.yaxis.get_tick_params()["labelleft"] for axes in panels(*values[:-1])]
    assert other == [True, True]


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ("gpt2 T=100 B=20 lora:r=8,targets=c_attn,c_proj", "gpt2\nT=100 B=20 lora:r=8,\ntargets=c_attn,c_proj"),
        ("T=128 d=768 p=3072", "T=128 d=768 p=3072"),
        ("gpt2", "gpt2"),
        ("x" * 40 + " B=1", "x" * 40 + "\nB=1"),
    ],
)
def test_titles_are_wrapped(row, title):
    (axes,) = panels(value("bk", (), (0.8, 0.9), row=row))
    assert axes.get_title(loc="left") == title
    assert "x" in title or all(len(line) <= TITLE for line in title.split("\n"))


def test_titles_of_panels_do_not_reach_the_next():
    row = "timm:beit_large_patch16_224 px=224 lora:r=8,targets=c_attn"
    chart = drawn(figure(), "throughput", [value("bk", (), (0.8, 0.9), row=f"{row} {i}") for i in range(4)]).draw()
    chart.canvas.draw()
    titles = [axes._left_title.get_window_extent() for axes in chart.axes]
    assert all(one.x1 < other.x0 for one, other in pairwise(titles))
    assert titles[-1].x1 < chart.legends[0].get_window_extent().x0


def test_rows_that_are_not_drawn_are_said():
    many = [value("bk", (1.0, 1.0), (1.0, 1.0), row=f"m{i} B=1") for i in range(MOST_ROWS + 2)]
    found = drawn(figure(), "throughput", many)
    assert found.caption.endswith(f"; the first {MOST_ROWS} of {MOST_ROWS + 2} workloads")
    assert len(found.draw().axes) == MOST_ROWS


def test_where_there_is_no_number_nothing_is_drawn():
    assert drawn(figure(), "throughput", [value("bk", ("oom", "oom"))]) is None
    assert drawn(figure(kind="decisions"), "first ghost layer", [value("2T^2 < pd", (9.0, 9.0))]) is None
