import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.reporting.numbers import count, duration, ratio, significant, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1.00"),
        (0.012345, "0.0123"),
        (12345, "12300"),
        (9.996, "10.0"),
        (1e-15, "1.00e-15"),
        (-2.5, "-2.50"),
    ],
)
def test_three_significant_digits(value, text):
    assert significant(value) == text


@given(st.floats(1e-12, 1e12))
def test_three_digits_are_within_half_a_percent(value):
    assert math.isclose(float(significant(value)), value, rel_tol=0.005)


def test_sizes_are_decimal():
    assert [size(v) for v in (12, 1500, 2.5e6, 1e9, 123.4e9)] == [
        "12 B",
        "1.50 kB",
        "2.50 MB",
        "1.00 GB",
        "123 GB",
    ]
    assert [count(v) for v in (5, 1500, 124_439_808)] == ["5", "1.50 k", "124 M"]


def test_a_ratio_comes_with_its_interval():
    assert ratio(0.974) == "0.97"
    assert ratio(0.974, 0.961, 0.989) == "0.97 (0.96-0.99)"
    assert ratio(0.0123) == "0.012"
    assert [ratio(v) for v in (999.4, 1234.5, 1e12)] == ["999.40", "1230", "1.00e+12"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4320, "1.20 h"),
        (3600, "1.00 h"),
        (4.56, "4.56 s"),
        (1, "1.00 s"),
        (0.0123, "12.3 ms"),
        (1e-3, "1.00 ms"),
        (5e-5, "50.0 us"),
        (2e-9, "0.00200 us"),
        (0, "0 us"),
    ],
)
def test_a_duration_has_the_unit_that_fits_it(seconds, text):
    assert duration(seconds) == text


@given(st.floats(1e-9, 1e7))
def test_a_duration_is_within_half_a_percent(seconds):
    value, unit = duration(seconds).split()
    assert math.isclose(float(value) * {"h": 3600, "s": 1, "ms": 1e-3, "us": 1e-6}[unit], seconds, rel_tol=0.005)
