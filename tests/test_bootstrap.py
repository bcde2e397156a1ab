import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dpbench.bootstrap import geometric_mean_ends, median_ends

several = st.lists(st.floats(1e-3, 1e3), min_size=6, max_size=12)
ENDS = (median_ends, geometric_mean_ends)


@pytest.mark.parametrize("number", range(1, 7))
def test_the_interval_of_the_median_is_that_of_all_draws_there_are(number):
    x = np.random.default_rng(number).lognormal(size=number)
    every = np.sort(np.median(x[np.array(list(itertools.product(range(number), repeat=number)))], axis=1))
    cut = math.ceil(number**number / 40)
    assert median_ends(x.tolist()) == (every[cut - 1], every[-cut])


@pytest.mark.parametrize("number", [6, 7, 12, 20, 21])
def test_the_interval_of_the_median_is_scipys(number):
    # Its draws have so many medians at or below an end, whichever value the cut between two of them falls on.
    x = np.random.default_rng(number).lognormal(size=number)
    drawn = scipy.stats.bootstrap(
        (x,), np.median, n_resamples=20000, method="percentile", rng=np.random.default_rng(0)
    ).bootstrap_distribution
    low, high = median_ends(x.tolist())
    slack = 4 * math.sqrt(0.025 * 0.975 / 20000)
    tiny = 1 + 1e-12
    assert (drawn < low / tiny).mean() - slack <= 0.025 <= (drawn <= low * tiny).mean() + slack
    assert (drawn > high * tiny).mean() - slack <= 0.025 <= (drawn >= high / tiny).mean() + slack


@pytest.mark.parametrize("number", [6, 7, 20])
def test_the_interval_of_the_geometric_mean_is_scipys(number):
    x = np.random.default_rng(number).lognormal(sigma=0.1, size=number)
    expected = scipy.stats.bootstrap(
        (x,), scipy.stats.gmean, n_resamples=20000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert geometric_mean_ends(x.tolist()) == pytest.approx((expected.low, expected.high), rel=0.01)


@pytest.mark.parametrize("ends", ENDS)
@given(x=several)
def test_ends_lie_within_the_values_and_are_the_same_each_time(ends, x):
    low, high = ends(x)
    assert min(x) <= low * (1 + 1e-12)
    assert low <= high
    assert high <= max(x) * (1 + 1e-12)
    assert ends(x) == (low, high)


@pytest.mark.parametrize("ends", ENDS)
@given(x=several, factor=st.floats(1e-3, 1e3))
def test_ends_in_another_unit_are_the_same_ends(ends, x, factor):
    assert ends([factor * v for v in x]) == pytest.approx([factor * end for end in ends(x)])


@given(x=several, data=st.data())
def test_the_order_of_the_rounds_does_not_matter_to_the_median(x, data):
    assert median_ends(data.draw(st.permutations(x))) == median_ends(x)


@given(x=several)
def test_upside_down_the_ends_of_the_median_change_places(x):
    low, high = median_ends([-v for v in x])
    assert (-high, -low) == median_ends(x)


@given(value=st.floats(1e-3, 1e3), number=st.integers(1, 12))
def test_where_all_rounds_are_alike_there_is_nothing_between_the_ends(value, number):
    assert median_ends([value] * number) == (value, value)
    assert geometric_mean_ends([value] * number) == pytest.approx((value, value))
