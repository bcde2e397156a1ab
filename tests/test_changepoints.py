from itertools import pairwise

import numpy as np
import pytest
import scipy.stats

from dpbench import changepoints
from dpbench.changepoints import change_points, fewest

NOISE = {
    "normal": lambda rng, n: rng.normal(0, 0.01, n),
    "heavy tails": lambda rng, n: 0.01 * rng.standard_t(2, n),
    "spikes": lambda rng, n: rng.normal(0, 0.01, n) + 0.25 * (rng.random(n) < 0.07),
    "two modes": lambda rng, n: rng.normal(0, 0.01, n) + 0.05 * (rng.random(n) < 0.5),
    "few values": lambda rng, n: rng.integers(0, 3, n) * 0.01,
}


def steps(seed, *parts, noise=0.01):
    """Parts of (level, length), with noise."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(level, noise, length) for level, length in parts])


def naive(x, t, k):
    """Q of Matteson and James, equations 5 and 6, with its sums written out."""
    left, right = x[:t], x[t:k]
    m, n = len(left), len(right)
    between = 2 / (m * n) * sum(abs(a - b) for a in left for b in right)
    within = [
        sum(abs(part[i] - part[j]) for i in range(len(part)) for j in range(i)) / (len(part) * (len(part) - 1) / 2)
        for part in (left, right)
    ]
    return m * n / (m + n) * (between - sum(within))


@pytest.mark.parametrize("n", [6, 7, 13, 25])
def test_the_statistic_is_the_one_of_the_paper(n):
    x = np.random.default_rng(n).normal(size=(3, n))
    found, places = changepoints._energy(x)
    for line, largest, place in zip(x, found, places, strict=True):
        windows = list(zip(*changepoints._windows(n), strict=True))
        expected = max(naive(line, t, k) for t, k in windows)
        assert largest == pytest.approx(expected)
        assert any(naive(line, t, k) == pytest.approx(expected) for t, k in windows if t == place)


@pytest.mark.parametrize("n", [6, 7, 13, 25, 100])
def test_every_place_is_tried_against_what_follows_near_it_and_all_that_follows(n):
    windows = set(zip(*map(list, changepoints._windows(n)), strict=True))
    assert {(t, n) for t in range(3, n - 2)} <= windows
    assert {(t, t + 3) for t in range(3, n - 2)} <= windows
    assert all(3 <= t <= k - 3 <= n - 3 for t, k in windows)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("n", [12, 25])
def test_a_series_without_a_change_has_none_but_for_the_stated_chance(noise, n):
    rng = np.random.default_rng(7)
    false = sum(bool(change_points(NOISE[noise](rng, n), seed=i)) for i in range(250))
    assert false <= scipy.stats.binom.ppf(0.999, 250, changepoints.LEVEL)


def test_another_level_is_kept_as_well():
    rng = np.random.default_rng(8)
    false = sum(bool(change_points(rng.normal(size=20), level=0.1, seed=i)) for i in range(300))
    low, high = scipy.stats.binom.ppf([0.001, 0.999], 300, 0.1)
    assert low <= false <= high


def test_equal_values_have_no_change():
    assert change_points([3.0] * 40) == []


@pytest.mark.parametrize(("before", "after"), [(15, 15), (20, 4), (12, 6), (6, 12)])
def test_a_step_of_five_times_the_noise_is_found_where_it_is(before, after):
    found = [change_points(steps(seed, (0, before), (0.05, after))) for seed in range(40)]
    assert sum(len(places) > 0 for places in found) >= 38
    assert sum(places == [before] for places in found) >= 34
    assert all(any(abs(place - before) <= 2 for place in places) for places in found if places)


def test_two_changes_are_two_also_where_the_second_takes_back_the_first():
    for parts in ([(0, 12), (0.1, 12), (0.2, 12)], [(0, 12), (0.1, 12), (0, 12)]):
        found = [change_points(steps(seed, *parts)) for seed in range(20)]
        assert sum(places == [12, 24] for places in found) >= 17
        assert all({12, 24} <= {p + d for p in places for d in (-1, 0, 1)} for places in found)


@pytest.mark.parametrize("place", [0, 7, 19])
@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
def test_one_wild_run_is_no_change(place, size):
    false = 0
    for seed in range(150):
        x = steps(seed, (0, 20))
        x[place] += size
        false += bool(change_points(x))
    assert false <= scipy.stats.binom.ppf(0.999, 150, changepoints.LEVEL)


def test_one_wild_run_hides_no_change():
    for seed in range(10):
        x = steps(seed, (0, 14), (0.05, 14))
        x[5] += 100
        x[20] -= 100
        assert any(abs(place - 14) <= 1 for place in change_points(x))


def test_a_drift_goes_one_way():
    for seed in range(10):
        x = np.linspace(0, 0.3, 40) + np.random.default_rng(seed).normal(0, 0.01, 40)
        ends = [0, *change_points(x), 40]
        levels = [np.mean(x[a:b]) for a, b in pairwise(ends)]
        assert len(levels) > 2
        assert levels == sorted(levels)


def test_changes_lie_at_least_three_runs_apart():
    for seed in range(10):
        ends = [0, *change_points(steps(seed, *[(0.2 * (i % 2), 4 + i) for i in range(6)])), 39]
        assert min(b - a for a, b in pairwise(ends)) >= changepoints.SHORTEST


def test_the_unit_of_the_values_does_not_matter():
    x = steps(0, (0, 12), (0.05, 12))
    assert change_points(x) == change_points(1000 * x + 5) == change_points(list(x)) == [12]
    assert change_points(-x) == [12]


# Of 10 runs, 2 in C(10, 5) = 252 orders, of 9 in C(9, 4) = 126, of 8 in 70, of 7 in 35.
@pytest.mark.parametrize(("level", "runs"), [(0.01, 10), (0.05, 8), (0.2, 6)])
def test_fewer_runs_than_could_tell_tell_nothing(level, runs):
    assert fewest(level) == runs
    assert change_points([0.0] * 3 + [1.0] * (runs - 4), level) == []
    assert change_points([0.0] * 12 + [1.0] * 12, level) == [12]
