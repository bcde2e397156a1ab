import pytest

from dpbench.reporting.sparkline import ASCII_BARS, BARS, sparkline


@pytest.mark.parametrize(("unicode", "bars", "cross"), [(True, BARS, "×"), (False, ASCII_BARS, "x")])
def test_the_smallest_is_at_the_bottom_and_the_largest_at_the_top(unicode, bars, cross):
    assert sparkline([1.0, 2.0, None], unicode) == bars[0] + bars[-1] + cross
    assert sparkline([float(i) for i in range(len(bars))], unicode) == bars


def test_plain_text_is_ascii():
    assert sparkline([1.0, 5.0, 2.0, None], False).isascii()


def test_noise_looks_flat():
    assert set(sparkline([1.0, 1.01, 1.005, 1.0], True)) == {BARS[0]}
    assert set(sparkline([2.0] * 5, False)) == {ASCII_BARS[0]}


def test_many_runs_share_a_column_by_their_median_and_none_hides():
    assert sparkline([1.0] * 10 + [2.0] * 10, False, width=4) == "__##"
    assert sparkline([1.0, 1.0, 9.0, 1.0, 1.0, 1.0], False, width=2) == "__"
    assert sparkline([1.0, None, 1.0, 1.0], False, width=2) == "x_"


def test_nothing_is_nothing():
    assert sparkline([], True) == ""
    assert sparkline([None, None], False) == "xx"
