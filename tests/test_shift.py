from itertools import combinations

import numpy as np
import pytest
import scipy.stats

from dpbench import shift
from dpbench.shift import ratio_between


def test_the_value_is_the_median_of_all_ratios():
    # 2/1, 3/1, 2/4, 3/4, 2/2, 3/2 = 0.5, 0.75, 1, 1.5, 2, 3
    assert ratio_between([1, 4, 2], [2, 3]).value == pytest.approx((1 * 1.5) ** 0.5)


def test_back_is_the_inverse():
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(size=9), rng.lognormal(size=12)
    there, back = ratio_between(a, b), ratio_between(b, a)
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)


@pytest.mark.parametrize(("m", "n"), [(3, 5), (3, 20), (5, 6), (10, 9)])
def test_the_interval_holds_the_factors_that_the_exact_test_does_not_reject(m, n):
    rng = np.random.default_rng(m + n)
    before, after = rng.lognormal(0, 0.1, m), rng.lognormal(0.2, 0.1, n)

    def rejected(factor):
        return scipy.stats.mannwhitneyu(after / factor, before, method="exact").pvalue <= 0.05

    found = ratio_between(before, after)
    assert rejected(found.low / 1.0001)
    assert not rejected(found.low * 1.0001)
    assert not rejected(found.high / 1.0001)
    assert rejected(found.high * 1.0001)


# Two of C(m + n, m) orders are the extremes: 2/20, 2/35 and 2/70 of (3, 3), (3, 4) and (4, 4).
@pytest.mark.parametrize(
    ("m", "n", "enough"), [(3, 3, False), (3, 4, False), (4, 4, True), (3, 5, True), (1, 9, False)]
)
def test_too_few_values_have_no_interval(m, n, enough):
    found = ratio_between(np.arange(1.0, m + 1), np.arange(1.0, n + 1))
    assert (found.low is not None, found.high is not None) == (enough, enough)


@pytest.mark.parametrize(("m", "n"), [(1, 4), (3, 3), (3, 5)])
def test_orders_are_counted_as_by_listing_them(m, n):
    counts = [0] * (m * n + 1)
    for places in combinations(range(m + n), m):
        counts[sum(places) - m * (m - 1) // 2] += 1
    assert shift._orders(m, n) == counts


@pytest.mark.parametrize(("m", "n"), [(11, 11), (11, 40), (30, 30)])
def test_of_many_values_the_normal_distribution_says_nearly_the_same(m, n, monkeypatch):
    normal = shift._outside(m, n)
    monkeypatch.setattr(shift, "EXACT", 100)
    assert abs(normal - shift._outside.__wrapped__(m, n)) <= 1


@pytest.mark.parametrize(("m", "n"), [(4, 6), (12, 15)])
def test_the_interval_covers_the_true_factor_as_often_as_it_says(m, n):
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        found = ratio_between(np.exp(0.02 * rng.standard_t(3, m)), 1.2 * np.exp(0.02 * rng.standard_t(3, n)))
        covered += found.low <= 1.2 <= found.high
    assert covered >= scipy.stats.binom.ppf(0.001, 400, 0.95)
