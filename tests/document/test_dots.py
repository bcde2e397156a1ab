"""Charts of reproduced figures: dots of three columns, lines over one size, and nothing where there is nothing."""

import pytest

from dpbench.document.threefold import MOST_ROWS, drawn
from tests.reporting.test_threefold import value
from tests.test_reproduction import figure


def over(sizes, name="bk", axis="B", **more):
    return [value(name, (None, 10.0 * n), sizes={axis: n}, row=f"m {axis}={n}", model="m", **more) for n in sizes]


def test_lines_over_the_one_size_that_varies():
    found = drawn(figure(), "throughput", [*over([1, 2, 4]), *over([1, 2, 4], "opacus")])
    assert found.caption == "throughput against B, predicted for T4 at full size"
    (axes,) = found.draw().axes[:1]
    assert [list(line.get_xdata()) for line in axes.lines] == [[1, 2, 4]] * 2
    assert list(axes.lines[0].get_ydata()) == [10, 20, 40]


def test_a_word_is_no_point_of_a_line():
    values = [*over([1, 2]), value("bk", (None, "oom"), sizes={"B": 4}, row="m B=4", model="m")]
    (line,) = drawn(figure(), "throughput", values).draw().axes[0].lines
    assert list(line.get_xdata()) == [1, 2]


@pytest.mark.parametrize(
    "values",
    [
        [*over([1, 2]), *over([1, 2], axis="T")],
        [*over([1, 2]), value("bk", (None, 9.0), sizes={"B": 1}, row="m B=1 biases", model="m")],
        [*over([1, 2]), value("bk", (None, 9.0), row="m", model="m")],
    ],
    ids=["two sizes", "something else", "one has none"],
)
def test_rows_that_differ_in_more_are_dots(values):
    assert "against" not in drawn(figure(), "throughput", values).caption


def test_dots_of_ratios_with_a_key():
    values = [value("nonprivate", (100.0, 90.0)), value("bk", (80.0, 90.0), (0.8, 1.0, 0.9))]
    found = drawn(figure(), "throughput", values)
    assert found.caption == "throughput, ratio to nonprivate: published, predicted for T4, measured here"
    marks = [line for line in found.draw().axes[0].lines if line.get_marker() != "None"]
    assert sorted(line.get_xdata()[0] for line in marks) == [0.8, 0.9, 1.0]


def test_flops_are_by_formula_and_traced():
    found = drawn(figure(kind="complexity"), "flops", [value("bk", (6.0, 6.0, 6.1), quantity="flops")])
    assert found.caption == "flops, examples/s: published, by formula, traced"


def test_rows_that_are_not_drawn_are_said():
    many = [value("bk", (1.0, 1.0), (1.0, 1.0), row=f"m{i} B=1") for i in range(MOST_ROWS + 2)]
    found = drawn(figure(), "throughput", many)
    assert found.caption.endswith(f"; the first {MOST_ROWS} of {MOST_ROWS + 2} workloads")
    assert len([axes for axes in found.draw().axes if axes.get_title(loc="left")]) == MOST_ROWS


def test_where_there_is_no_number_nothing_is_drawn():
    assert drawn(figure(), "throughput", [value("bk", ("oom", "oom"))]) is None
    assert drawn(figure(kind="decisions"), "first ghost layer", [value("2T^2 < pd", (9.0, 9.0))]) is None
