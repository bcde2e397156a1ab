"""Verdicts on times, from records that deserve them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpbench.change import Verdict
from dpbench.ratios import Ratio
from dpbench.records import Metric, Workload
from dpbench.slowdown import as_they_are, judged, of_one_run, of_two_runs, per_example
from dpbench.timed import AGAIN, CONTROL, SECONDS
from tests.records_for_tests import record

V = Verdict


def times(factor, seed, rounds=20, scatter=0.01):
    draws = np.random.default_rng(seed)
    return tuple((factor * float(v),) for v in draws.lognormal(sigma=scatter, size=rounds))


def timed(factor, seed=0, again=None, control=None, name="bk", **how):
    """A record of an implementation that takes ``factor`` times a second."""
    made = record(name, seconds=times(factor, seed, **how))
    more = {}
    if again is not None:
        more[AGAIN] = Metric("s", times(again, seed + 1, **how))
    if control is not None:
        more[CONTROL] = Metric("s", times(control, seed + 2, **how))
    return replace(made, metrics={**made.metrics, **more})


def one_run(base, new, **how):
    return of_one_run(new.cell, base, new, **how)


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (1.0, 0.99, 1.01, V.SAME),
        (1.02, 1.01, 1.03, V.SAME),
        (1.02, 1.01, 1.04, V.INCONCLUSIVE),
        (1.05, 1.01, 1.09, V.SLOWER),
        (1.05, 0.99, 1.11, V.INCONCLUSIVE),
        (0.95, 0.92, 0.99, V.FASTER),
        (0.95, 0.90, 1.001, V.INCONCLUSIVE),
        (0.98, 0.975, 0.985, V.SAME),
        (1.5, None, None, V.INCONCLUSIVE),
        (math.nan, None, None, V.NOT_COMPARABLE),
    ],
)
def test_a_difference_counts_if_it_is_sure_and_no_smaller_than_the_least_that_matters(value, low, high, verdict):
    assert judged(Ratio(value, low, high, 20)) is verdict


def test_a_larger_least_effect_makes_a_small_difference_none():
    ratio = Ratio(1.05, 1.04, 1.06, 20)
    assert judged(ratio, 0.03) is V.SLOWER
    assert judged(ratio, 0.10) is V.SAME
    assert judged(Ratio(1.01, 1.005, 1.015, 20), 0.0) is V.SLOWER
    assert judged(None) is V.NOT_COMPARABLE


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, V.SAME), (1.2, V.SLOWER), (0.8, V.FASTER)])
def test_one_run_says_what_was_planted(factor, verdict):
    change = one_run(timed(1.0, 1), timed(factor, 5))
    assert change.verdict is verdict
    assert change.factor == pytest.approx(factor, rel=0.02)
    assert (change.base, change.new) == (pytest.approx(1 / 8, rel=0.02), pytest.approx(factor / 8, rel=0.02))


@pytest.mark.parametrize("factor", [1.2, 0.8])
def test_what_was_repeated_counts_only_if_both_agree(factor):
    agreeing = one_run(timed(1.0, 1, again=1.0), timed(factor, 5, again=factor))
    assert agreeing.verdict is (V.SLOWER if factor > 1 else V.FASTER)
    assert agreeing.factor == pytest.approx(factor, rel=0.01)
    for again in (1.0, 1 / factor):
        apart = one_run(timed(1.0, 1, again=1.0), timed(factor, 5, again=again))
        assert apart.verdict is V.INCONCLUSIVE
        assert "when it was repeated" in apart.reason


def test_a_base_that_differs_from_itself_shows_nothing():
    for control in (1.2, 0.8):
        change = one_run(timed(1.0, 1, control=control), timed(1.2, 5))
        assert (change.verdict, change.control.value) == (V.INCONCLUSIVE, pytest.approx(control, rel=0.02))
        assert "differs from itself" in change.reason
    sound = one_run(timed(1.0, 1, control=1.0), timed(1.2, 5))
    assert (sound.verdict, sound.control.value) == (V.SLOWER, pytest.approx(1.0, rel=0.02))
    same = one_run(timed(1.0, 1, control=1.2), timed(1.0, 5))
    assert same.verdict is V.SAME, "a difference would not count; that there is none does"


def test_the_control_counts_from_whichever_side_is_called_the_base():
    base, new = timed(1.0, 1, control=1.2), timed(1.2, 5)
    assert one_run(new, base).verdict is V.INCONCLUSIVE


def test_scatter_and_too_few_rounds_are_inconclusive_and_say_so():
    assert one_run(timed(1.0, 1, scatter=0.2), timed(1.05, 5, scatter=0.2)).verdict is V.INCONCLUSIVE
    few = one_run(timed(1.0, 1, rounds=5), timed(2.0, 5, rounds=5))
    assert (few.verdict, few.reason) == (V.INCONCLUSIVE, "5 rounds, an interval needs 6")


def test_a_round_that_is_no_number_makes_the_cell_not_comparable():
    new = timed(1.0)
    spoiled = replace(new, metrics={SECONDS: Metric("s", (*new.metrics[SECONDS].samples[1:], (math.nan,)))})
    for change in (one_run(new, spoiled), one_run(spoiled, new), as_they_are(new.cell, new, spoiled)):
        assert (change.verdict, change.reason) == (V.NOT_COMPARABLE, "a time that is no number")


def test_what_is_compared_is_the_time_of_an_example():
    large = Workload(model="m", batch=8, logical_batch=32)
    assert per_example(record(on=large, seconds=((3.2,),))) == [[0.1]]
    assert per_example(record(on=Workload(model="m", batch="max"), seconds=((3.2,),))) == []


def two_runs(base, new, before=None, after=None):
    held = [{} if r is None else {r.cell.workload: r} for r in (before, after)]
    return of_two_runs(new.cell, base, new, *held)


def test_two_runs_are_compared_relative_to_the_reference_of_each():
    before, after = timed(1.0, 1, name="nonprivate"), timed(1.5, 2, name="nonprivate")
    slower_machine = two_runs(timed(1.2, 3), timed(1.8, 4), before, after)
    assert (slower_machine.verdict, slower_machine.factor) == (V.SAME, pytest.approx(1.0, rel=0.02))
    slower_code = two_runs(timed(1.2, 3), timed(1.8, 4), before, replace(before))
    assert (slower_code.verdict, slower_code.factor) == (V.SLOWER, pytest.approx(1.5, rel=0.02))
    hidden = two_runs(timed(1.2, 3), timed(1.2, 4), before, after)
    assert hidden.verdict is V.FASTER, "on a slower machine it took as long"


def test_without_a_reference_two_runs_show_no_difference_as_no_clock_is_shared():
    before, after = timed(1.0, 1, name="nonprivate"), timed(1.5, 2, name="nonprivate")
    for found in (two_runs(timed(1.0, 3), timed(1.5, 4)), two_runs(before, after, before, after)):
        assert found.verdict is V.INCONCLUSIVE
        assert "dpbench ab" in found.reason
    assert two_runs(timed(1.0, 3), timed(1.0, 4)).verdict is V.SAME
    assert as_they_are(before.cell, before, after).verdict is V.SLOWER
