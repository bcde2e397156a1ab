import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dpbench import stats

positive = st.floats(1e-3, 1e3)
rounds = st.lists(st.lists(positive, min_size=1, max_size=5), min_size=1, max_size=8)


def test_a_round_counts_once_whatever_its_samples():
    assert stats.typical([[1.0] * 100, [3.0], [2.0, 2.0]]).value == 2.0


def test_lost_rounds_are_left_out():
    made = stats.typical([[], [2.0], []])
    assert (made.value, made.rounds) == (2.0, 1)
    assert stats.typical([[], []]) is None
    assert stats.typical([]) is None


@pytest.mark.parametrize("number", range(1, 9))
def test_intervals_start_at_the_stated_number_of_rounds(number):
    made = stats.typical([[float(i)] for i in range(number)])
    assert (made.low is None) == (made.high is None) == (number < stats.MIN_ROUNDS)


def test_the_stated_minimum_is_where_the_whole_range_covers_the_median():
    assert 1 - 2.0 ** (1 - stats.MIN_ROUNDS) >= 0.95 > 1 - 2.0 ** (2 - stats.MIN_ROUNDS)


@given(rounds)
def test_the_interval_holds_the_value_and_lies_within_the_rounds(samples):
    made = stats.typical(samples)
    if made.low is not None:
        assert made.smallest <= made.low <= made.high <= made.largest
    assert made.smallest <= made.value <= made.largest
    assert stats.typical(samples) == made


def test_the_bootstrap_agrees_with_scipy():
    x = np.random.default_rng(3).lognormal(size=12)
    made = stats.typical([[v] for v in x])
    expected = scipy.stats.bootstrap(
        (x,), np.median, n_resamples=20000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert made.low == pytest.approx(expected.low, rel=0.05)
    assert made.high == pytest.approx(expected.high, rel=0.05)


@given(rounds, positive)
def test_a_slowdown_common_to_a_round_cancels_in_the_ratio(samples, factor):
    slower = [[factor * v for v in r] for r in samples]
    assert stats.paired_ratio(slower, samples).value == pytest.approx(factor)


@given(rounds, rounds)
def test_the_ratio_turned_round_is_its_inverse(a, b):
    assert stats.paired_ratio(a, b).value == pytest.approx(1 / stats.paired_ratio(b, a).value)


def test_the_ratio_is_the_geometric_mean_of_the_rounds():
    made = stats.paired_ratio([[2.0], [8.0], [5.0]], [[1.0], [1.0], []])
    assert (made.value, made.rounds) == (pytest.approx(math.sqrt(16)), 2)
    assert stats.paired_ratio([[1.0], []], [[], [1.0]]) is None


def test_the_bootstrap_of_the_ratio_agrees_with_scipy():
    x = np.random.default_rng(5).lognormal(sigma=0.1, size=12)
    made = stats.paired_ratio([[v] for v in x], [[1.0]] * 12)
    expected = scipy.stats.bootstrap(
        (x,), scipy.stats.gmean, n_resamples=20000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert (made.low, made.high) == pytest.approx((expected.low, expected.high), rel=0.01)


def test_outliers_are_found_and_ordinary_scatter_is_not():
    scatter = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    assert stats.outliers(scatter) == []
    assert stats.outliers([*scatter, 1.5]) == [6]
    assert stats.outliers([1.0] * 9 + [1.2]) == [9]
    assert stats.outliers([1.0] * 5) == []
    assert stats.outliers([1.0, 9.0]) == []


def test_scatter_is_the_quartiles_distance_in_the_middle_round():
    assert stats.scatter([[1, 2, 3, 4, 5], [2, 2, 2, 2], [1, 1, 1, 2, 2]]) == pytest.approx(2 / 3)
    assert stats.scatter([[1.0, 2.0]]) is None


@given(st.lists(st.floats(-1e300, 1e300) | st.just(math.nan), min_size=1, max_size=9))
def test_the_median_is_numpys(x):
    assert stats.median(x) == pytest.approx(np.median(x), nan_ok=True)


@given(rounds)
def test_scatter_is_that_of_numpys_quartiles(samples):
    spreads = [np.subtract(*np.percentile(r, [75, 25])) / np.median(r) for r in samples if len(r) > 3]
    assert stats.scatter(samples) == (pytest.approx(np.median(spreads)) if spreads else None)


@given(st.lists(positive, min_size=3, max_size=12))
def test_outliers_are_those_of_scipys_deviation(x):
    # Sums of equal distances may round to another side of a threshold that they lie on.
    distance = np.abs(np.array(x) - np.median(x))
    scale = scipy.stats.median_abs_deviation(x) / 0.6745 or 1.2533 * distance.mean()
    clear = np.abs(distance / scale - 3.5) > 1e-9 if scale else np.ones(len(x), bool)
    expected = distance > 3.5 * scale if scale else np.zeros(len(x), bool)
    found = np.isin(np.arange(len(x)), stats.outliers(x))
    assert (found == expected)[clear].all()


@given(rounds, st.sampled_from([2.0**k for k in range(-10, 11)]))
def test_in_another_unit_outliers_and_scatter_are_the_same(samples, factor):
    other = [[factor * v for v in r] for r in samples]
    assert [stats.outliers(r) for r in other] == [stats.outliers(r) for r in samples]
    assert stats.scatter(other) == stats.scatter(samples)
    assert stats.typical(other).value == factor * stats.typical(samples).value


@given(rounds, st.randoms())
def test_the_order_of_rounds_and_of_samples_does_not_matter(samples, random):
    mixed = [random.sample(r, len(r)) for r in random.sample(samples, len(samples))]
    a, b = stats.typical(samples), stats.typical(mixed)
    assert (a.value, a.low, a.high, a.rounds) == (b.value, b.low, b.high, b.rounds)
    assert stats.scatter(mixed) == stats.scatter(samples)


def test_no_interval_is_taken_before_it_is_asked_for():
    asked = []

    def ends(values):
        asked.append(values)
        return 0.0, 1.0

    made = stats.Estimate(0.5, (0.5,) * stats.MIN_ROUNDS, ends)
    assert asked == []
    assert (made.low, made.high, len(asked)) == (0.0, 1.0, 1)
