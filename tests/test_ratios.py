import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dpbench import ratios
from dpbench.bootstrap import tail
from dpbench.stats import MIN_ROUNDS

seconds = st.floats(1e-3, 1e3)
rounds = st.lists(st.lists(seconds, min_size=1, max_size=4), min_size=1, max_size=12)


def scattered(seed, number=20, scatter=0.03, factor=1.0):
    """One sample for each round."""
    draws = np.random.default_rng(seed)
    return [[factor * float(v)] for v in draws.lognormal(sigma=scatter, size=number)]


def ends(ratio):
    return ratio.low, ratio.high


def trimmed_gmean(x, axis=-1):
    return np.exp(scipy.stats.trim_mean(np.log(x), ratios.TRIMMED, axis=axis))


@given(rounds, st.floats(0.1, 10))
def test_a_factor_common_to_all_rounds_is_found_whatever_the_machine_did(samples, factor):
    slower = [[factor * s for s in r] for r in samples]
    found = ratios.paired(slower, samples)
    assert found.value == pytest.approx(factor)
    if len(samples) >= MIN_ROUNDS:
        assert ends(found) == (pytest.approx(factor), pytest.approx(factor))


@given(rounds, rounds)
def test_changing_sides_turns_value_and_interval_round(new, base):
    for how in (ratios.paired, ratios.independent):
        there, back = how(new, base), how(base, new)
        assert there.value == pytest.approx(1 / back.value)
        assert (there.low is None) == (back.low is None)
        if how is ratios.paired and there.low is not None:
            # The same rounds are drawn; ends are interpolated between logarithms.
            assert ends(there) == (pytest.approx(1 / back.high, rel=1e-2), pytest.approx(1 / back.low, rel=1e-2))


def test_a_planted_ratio_is_recovered_from_scatter():
    for seed in range(10):
        base = scattered(seed)
        found = ratios.paired(scattered(seed + 100, factor=1.1), base)
        assert found.value == pytest.approx(1.1, rel=0.03)
        assert found.low < found.value < found.high
        apart = ratios.independent(scattered(seed + 100, factor=1.1), base)
        assert apart.value == pytest.approx(1.1, rel=0.03)


EXPANDED = 1 - 2 * tail(20)
"""The level at which scipy's percentiles are ours."""


@pytest.mark.parametrize("rounds", [6, 8, 10, 20])
def test_the_interval_covers_95_of_100_also_where_rounds_are_few(rounds):
    draws = np.random.default_rng(rounds)
    quotients = draws.lognormal(sigma=0.04, size=(1000, rounds))
    found = [ratios.paired([[q] for q in row], [[1.0]] * rounds) for row in quotients]
    covered = sum(f.low <= 1 <= f.high for f in found)
    assert covered >= 915, "four standard errors below 94 %"


def test_the_value_is_the_trimmed_mean_of_scipy():
    new, base = scattered(1), scattered(2)
    quotients = np.array([n / b for (n,), (b,) in zip(new, base, strict=True)])
    assert ratios.paired(new, base).value == pytest.approx(trimmed_gmean(quotients))
    quotient = trimmed_gmean(np.array(new)[:, 0]) / trimmed_gmean(np.array(base)[:, 0])
    assert ratios.independent(new, base).value == pytest.approx(quotient)


def assert_near(found, expected):
    """Both ends, to a tenth of the interval's width: each comes from draws of its own."""
    width = math.log(expected.high / expected.low)
    assert math.log(found.low / expected.low) == pytest.approx(0, abs=0.1 * width)
    assert math.log(found.high / expected.high) == pytest.approx(0, abs=0.1 * width)


def test_the_interval_of_paired_rounds_is_the_bootstrap_of_scipy():
    new, base = scattered(3), scattered(4)
    quotients = np.array([n / b for (n,), (b,) in zip(new, base, strict=True)])
    expected = scipy.stats.bootstrap(
        (quotients,),
        trimmed_gmean,
        n_resamples=20000,
        confidence_level=EXPANDED,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert_near(ratios.paired(new, base), expected)


def test_the_interval_of_two_runs_is_the_bootstrap_of_scipy_over_either_alone():
    new, base = scattered(5, 15), scattered(6, 20)

    def quotient(a, b, axis=-1):
        return trimmed_gmean(a, axis) / trimmed_gmean(b, axis)

    expected = scipy.stats.bootstrap(
        (np.array(new)[:, 0], np.array(base)[:, 0]),
        quotient,
        n_resamples=20000,
        confidence_level=1 - 2 * tail(15),
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert_near(ratios.independent(new, base), expected)


def test_the_interval_covers_what_was_planted_nearly_as_often_as_it_says():
    """A percentile bootstrap of 20 rounds covers a little less than 95 %; scipy's of the same data is the measure."""
    draws = np.random.default_rng(7)
    ours = theirs = 0
    for trial in range(200):
        quotients = 1.05 * draws.lognormal(sigma=0.04, size=20)
        found = ratios.paired([[q] for q in quotients], [[1.0]] * 20, seed=trial)
        ours += found.low <= 1.05 <= found.high
        interval = scipy.stats.bootstrap(
            (quotients,),
            trimmed_gmean,
            n_resamples=500,
            confidence_level=EXPANDED,
            method="percentile",
            rng=np.random.default_rng(trial),
        ).confidence_interval
        theirs += interval.low <= 1.05 <= interval.high
    assert abs(ours - theirs) <= 6
    assert ours >= 176, "three standard errors below 95 %, and two per cent for so few rounds"


@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.01, 100))
def test_what_fell_into_a_fifth_of_the_rounds_does_not_move_it(seed, hit, factor):
    base, new = scattered(seed), scattered(seed + 1, factor=1.1)
    spoiled = [[s * factor for s in r] if i < hit else r for i, r in enumerate(new)]
    quotients = [n[0] / b[0] for n, b in zip(new[hit:], base[hit:], strict=True)]
    found = ratios.paired(spoiled, base)
    assert min(quotients) <= found.value <= max(quotients)
    assert found.value == pytest.approx(1.1, rel=0.06)


def test_a_spike_inside_a_round_does_not_move_it():
    base = [[1.0, 1.0, 1.0]] * 8
    assert ratios.paired([[1.0, 1.0, 50.0]] * 8, base).value == 1.0


@pytest.mark.parametrize("number", range(1, 9))
def test_too_few_rounds_have_a_value_and_no_interval(number):
    for found in (
        ratios.paired(scattered(1, number), scattered(2, number)),
        ratios.independent(scattered(1, number), scattered(2, 20)),
        ratios.relative(*(scattered(i, number if i else 20) for i in range(4))),
    ):
        assert found.rounds == number
        assert (found.low is None) == (found.high is None) == (number < MIN_ROUNDS)


def test_rounds_that_either_side_lost_are_left_out():
    found = ratios.paired([[2.0], [], [4.0]], [[1.0], [1.0], [1.0]])
    assert (found.value, found.rounds) == (pytest.approx(math.sqrt(8)), 2)
    assert ratios.paired([[1.0], []], [[], [1.0]]) is None
    assert ratios.independent([[1.0]], []) is None
    assert ratios.relative([[1.0]], [[1.0]], [[]], [[1.0]]) is None


@given(st.integers(0, 1000), st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.2, 5))
def test_what_a_reference_shares_with_its_own_run_cancels(seed, change, machine, drift):
    def clock(i):
        return machine * (1 + drift * i)

    base, reference = scattered(seed), scattered(seed + 1)
    new = [[change * s * clock(i) for s in r] for i, r in enumerate(base)]
    other = [[s * clock(i) for s in r] for i, r in enumerate(reference)]
    assert ratios.relative(new, other, base, reference).value == pytest.approx(change)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
@pytest.mark.parametrize("number", [3, 20])
def test_a_single_round_that_is_no_time_makes_the_ratio_no_number(bad, number):
    good = scattered(1, number)
    spoiled = [*good[1:], [bad]]
    for found in (
        ratios.paired(spoiled, good),
        ratios.paired(good, spoiled),
        ratios.independent(good, spoiled),
        ratios.relative(good, good, good, spoiled),
    ):
        assert math.isnan(found.value)
        assert ends(found) == (None, None)


def test_pooled_weighs_by_rounds_and_overall_by_cells():
    many, few = ratios.paired([[2.0]] * 9, [[1.0]] * 9), ratios.paired([[4.0]] * 6, [[1.0]] * 6)
    assert ratios.pooled([many, few]).value == pytest.approx((2**9 * 4**6) ** (1 / 15))
    assert ratios.overall([many, few]).value == pytest.approx(math.sqrt(8))
    assert ratios.overall([many, few]).rounds == 6
    assert ratios.overall([]) is None


def test_a_mean_over_cells_is_surer_than_one_cell_and_without_an_interval_where_one_has_none():
    cells = [ratios.paired(scattered(i), scattered(i + 50), seed=i) for i in range(16)]
    together = ratios.overall(cells)
    values = [c.value for c in cells]
    assert together.value == pytest.approx(scipy.stats.gmean(values))
    assert math.log(together.high / together.low) < 0.5 * min(math.log(c.high / c.low) for c in cells)
    short = ratios.paired([[1.0]] * 3, [[2.0]] * 3)
    assert ends(ratios.overall([*cells, short])) == (None, None)


def test_the_same_data_give_the_same_interval():
    a, b = scattered(1), scattered(2)
    assert ends(ratios.paired(a, b)) == ends(ratios.paired(a, b))
    assert ends(ratios.paired(a, b)) != ends(ratios.paired(a, b, seed=1))
