from itertools import count

import numpy as np
import pytest

from dpbench.system.noise import Noise, finding, probe, summary


def test_a_machine_that_repeats_itself_exactly_has_none():
    assert summary(np.full(400, 0.002)) == Noise(samples=400, spread=0, step=0, in_turns=0)


@pytest.mark.parametrize("after", [2.2, 1.8])
def test_a_lasting_step_is_found_at_its_size_and_leaves_turns_alone(after):
    seen = summary(np.array([2.0] * 200 + [after] * 200))
    assert seen.step == pytest.approx(after / 2 - 1)
    assert seen.in_turns == pytest.approx(0, abs=1e-12)


def test_the_spread_is_that_of_quartiles():
    seen = summary(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 80))
    assert seen.spread == pytest.approx((4 - 2) / 3)


def test_what_it_says_would_be_seen_is_seen_in_80_of_100_comparisons():
    """By simulation: two-sided z-tests at the 5 % level of 20 log ratios with a planted difference of that size."""
    g = np.random.default_rng(0)
    promised = np.mean([np.log1p(summary(np.exp(g.normal(0, 0.03, 800))).in_turns) for _ in range(200)])
    # Two medians of 20 samples each: what the scatter of a log ratio is, is drawn anew and not computed.
    sides = np.median(g.normal(0, 0.03, (2, 2000, 20, 20)), axis=-1)
    ratios = sides[0] - sides[1]
    error = ratios.std() / np.sqrt(20)
    found = np.abs(ratios.mean(axis=1) + promised) > 1.96 * error
    assert found.mean() == pytest.approx(0.8, abs=0.04)


def test_the_probe_asks_the_clock_and_nothing_else():
    ticks = count(step=1)
    calls = []
    seen = probe(lambda: calls.append(next(ticks)), lambda: next(ticks) * 1e-3, seconds=1)
    assert calls
    assert seen.samples >= 80


@pytest.mark.parametrize(
    ("step", "in_turns", "verdict"), [(0.01, 0.01, "ok"), (-0.05, 0.01, "disturbs"), (0.0, 0.04, "disturbs")]
)
def test_a_machine_that_would_hide_three_percent_disturbs(step, in_turns, verdict):
    one = finding(Noise(samples=500, spread=0.1, step=step, in_turns=in_turns))
    assert one.verdict == verdict
    assert bool(one.fix) == (verdict == "disturbs")
    assert f"would tell {round(100 * in_turns)}.0 % between two that take turns" in one.text


def test_a_machine_that_is_badly_disturbed_is_told_in_plain_numbers():
    text = finding(Noise(samples=128, spread=1.72, step=149.4, in_turns=0.091)).text
    assert "lie 170 % apart, the largest lasting step is 15000 %" in text
