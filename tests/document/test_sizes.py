"""Lines over one size: where they end out of memory, where they are interrupted, and which cover each other."""

import math

import pytest

from dpbench.document.sizes import WIDTH, coinciding, over_a_size
from tests.reporting.test_reproduction import value
from tests.test_reproduction import figure


def over(sizes, name="bk", axis="B", numbers=None, **more):
    numbers = numbers or [10.0 * n for n in sizes]
    pairs = zip(sizes, numbers, strict=True)
    return [value(name, (None, y), sizes={axis: n}, row=f"m {axis}={n}", model="m", **more) for n, y in pairs]


def axes_of(*values):
    return over_a_size(figure(), "throughput", values).draw().axes[0]


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_lines_over_the_one_size_that_varies():
    values = [*over([1, 2, 4]), *over([1, 2, 4], "opacus", numbers=[5.0, 6.0, 7.0])]
    found = over_a_size(figure(), "throughput", values)
    assert found.caption == "throughput against B, predicted for T4, at full size"
    (axes,) = found.draw().axes
    assert {tuple(line.get_ydata()) for line in axes.lines} == {(10, 20, 40), (5, 6, 7)}
    assert all(list(line.get_xdata()) == [1, 2, 4] for line in axes.lines)


def test_flops_are_by_formula():
    values = over([1, 2], quantity="flops")
    assert over_a_size(figure(), "flops", values).caption == "FLOPs against B, by formula, at full size"


@pytest.mark.parametrize(
    "values",
    [
        [*over([1, 2]), *over([1, 2], axis="T")],
        [*over([1, 2]), value("bk", (None, 9.0), sizes={"B": 1}, row="m B=1 biases", model="m")],
        [*over([1, 2]), value("bk", (None, 9.0), row="m", model="m")],
        [*over([1, 2]), value("opacus", (7.0, 9.0), sizes={"B": 1}, row="m B=1", model="m")],
        over([1, 2], numbers=["oom", "oom"]),
    ],
    ids=["two sizes", "something else", "one has none", "published", "no number"],
)
def test_anything_else_is_no_line(values):
    assert over_a_size(figure(), "throughput", values) is None


def test_where_a_line_ends_out_of_memory_is_written_at_that_size():
    values = [*over([1, 2, 4, 8], "vmap", numbers=[5.0, 6.0, "oom", "oom"]), *over([1, 2, 4, 8])]
    found = over_a_size(figure(), "throughput", values)
    (axes,) = found.draw().axes
    assert words(axes) == ["vmap OOM"]
    assert axes.texts[0].xy[0] == 4
    assert found.caption.endswith("; OOM: out of memory, at that size")


def test_words_of_several_lie_above_each_other_below_the_lines():
    values = [y for name in ("vmap", "opacus", "bk") for y in over([1, 2], name, numbers=[5.0, "oom"])]
    axes = axes_of(*values, *over([1, 2], "nonprivate"))
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 3
    assert all(one.y1 <= other.y0 + 1 or other.y1 <= one.y0 + 1 for one in boxes for other in boxes if one is not other)
    lowest = axes.transData.transform((1, 5.0))[1]
    assert max(box.y1 for box in boxes) < lowest


def test_what_has_no_number_interrupts_a_line():
    (line,) = axes_of(*over([1, 2, 4], numbers=[5.0, "refused: why", 7.0])).lines
    assert [math.isnan(y) for y in line.get_ydata()] == [False, True, False]


def test_an_axis_of_lines_has_ticks_that_people_say():
    axes = axes_of(*over([1, 2, 4], numbers=[100.0, 400.0, 900.0]))
    assert axes.get_yscale() == "log"
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert len(shown) > 2
    assert "200" in shown


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ([10.0, 20.0, 40.0], True),
        ([10.05, 20.1, 39.8], True),
        ([10.0, 20.0, 80.0], True),
        ([10.0, 21.0, 42.0], False),
        ([10.0, 20.0 * 1.02, 40.0 * 1.02], False),
    ],
)
def test_lines_that_cover_each_other(other, together):
    lines = {"bk": {1: 10.0, 2: 20.0, 4: 40.0}, "bk_mixopt": dict(zip((1, 2, 4), other, strict=True))}
    assert coinciding(lines) == ([["bk", "bk_mixopt"]] if together else [["bk"], ["bk_mixopt"]])


def test_where_there_is_no_number_nothing_covers_anything():
    assert coinciding({"bk": {1: math.nan}, "vmap": {1: math.nan}}) == [["bk"], ["vmap"]]


def test_a_line_below_another_is_wider_and_both_are_said():
    values = [*over([1, 2]), *over([1, 2], "bk_mixopt"), *over([1, 2], "opacus", numbers=[1.0, 2.0])]
    found = over_a_size(figure(), "throughput", values)
    assert "within 1 % of each other at more than half of the sizes: bk and bk_mixopt" in found.caption
    drawn = [line for line in found.draw().axes[0].lines if list(line.get_ydata()) == [10, 20]]
    first, second = drawn
    assert first.get_linewidth() > second.get_linewidth() == WIDTH
    assert first.get_color() != second.get_color()
