import json
from dataclasses import replace

import pytest

from dpbench.records import Outcome, Round
from dpbench.reporting import visible as reporting
from dpbench.state import State
from dpbench.visible import visible
from tests.records_for_tests import record
from tests.test_comparison import results
from tests.test_slowdown import timed


def smallest(made):
    return {one.cell.implementation: one.smallest for one in made}


def test_what_scatters_more_shows_less():
    quiet = visible(results(timed(1.0, 1, scatter=0.01)))
    noisy = visible(results(timed(1.0, 1, scatter=0.10)))
    assert 0.10 < quiet[0].smallest < 0.12 < noisy[0].smallest


def test_the_smallest_is_what_is_found_in_four_of_five_tries():
    found = visible(results(timed(1.0, 1, rounds=20, scatter=0.05)))
    # 1.1 exp(2.8 sqrt(2) 0.05 / sqrt(20)) - 1 = 0.15, of a mean that a trimmed one comes near to.
    assert found[0].smallest == pytest.approx(0.15, abs=0.025)


def test_beside_a_reference_it_is_that_of_the_ratio():
    made = visible(results(timed(1.0, 1, name="nonprivate"), timed(1.1, 2)))
    assert [one.relative for one in made] == [False, True]
    assert "relative to nonprivate" in reporting.lines(made)[-1]
    alone = visible(results(timed(1.1, 2)))
    assert not alone[0].relative
    assert "relative" not in reporting.lines(alone)[-1]


def test_too_few_rounds_show_nothing_and_say_what_to_do():
    (found,) = visible(results(timed(1.0, 1, rounds=3)))
    assert (found.smallest, found.rounds) == (None, 3)
    assert found.remarks == ("3 rounds, an interval needs 6: --rounds 6 or more",)
    assert reporting.lines([found])[-1].startswith("0 of 1 timed cells have an interval")


def test_what_disturbed_is_said():
    round_ = Round(started=0.0, warm_up=4, settled=False, state=State(throttled=("power brake",)))
    (found,) = visible(results(replace(timed(1.0, 1, rounds=6), rounds=(round_,) * 6)))
    text = "\n".join(reporting.lines([found]))
    assert "in 6 of 6 rounds" in text
    assert "clocks were held down: power brake" in text


def test_what_was_not_timed_says_why_and_all_is_json():
    made = visible(results(record(outcome=Outcome.REFUSED, reason="not to my taste"), timed(1.0, 1)))
    assert made[0].remarks == ("refused: not to my taste",)
    assert json.loads(json.dumps([one.as_json() for one in made], allow_nan=False))[0]["cell"]["implementation"] == "bk"
