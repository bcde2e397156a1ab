"""The gate fails closed: what is worse, broken, missing or unknown does not pass, and nothing else is held back."""

import math
from dataclasses import replace

import pytest

from dpbench.change import Verdict
from dpbench.comparison import compare
from dpbench.coverage import Coverage
from dpbench.gate import FAILED, FINE, TRIPPED, UNKNOWN, blamed_on_versions, judge
from dpbench.records import Metric, Outcome
from dpbench.rules import Rules
from dpbench.timed import SECONDS
from tests.records_for_tests import record
from tests.test_comparison import ELSEWHERE, TRACED, good, results, with_memory
from tests.test_slowdown import times


def ruling(base, new, wanted=(), environment=None, **rules):
    """Of two sides of one run, or of two runs where an environment is given."""
    held = {"environment": environment} if environment else {"run": "r"}
    sides = results(*base, **({} if environment else held)), results(*new, **held)
    return judge(compare(*sides), sides[1].records, Rules(**rules), set(wanted))


def exit_code(base, new, **how):
    return ruling([base], [new], **how).exit_code


def test_what_is_the_same_passes():
    found = ruling([good()], [good(seed=5)])
    assert (found.exit_code, found.warned) == (FINE, [])


def seconds_of(*rounds):
    return replace(good(), metrics={**good().metrics, SECONDS: Metric("s", tuple(rounds))})


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (good(factor=1.2, seed=5), TRIPPED),
        (with_memory(1.05), TRIPPED),
        (with_memory(math.nan), TRIPPED),
        (seconds_of(*times(1.0, 5)[1:], (math.nan,)), TRIPPED),
        (seconds_of(*times(1.0, 5, rounds=5)), TRIPPED),
        (seconds_of(), TRIPPED),
        (replace(good(), metrics={}), TRIPPED),
        (good(traced=None), TRIPPED),
        (good(coverage=None), TRIPPED),
        (good(traced=replace(TRACED, flops=1001)), TRIPPED),
        (good(traced=replace(TRACED, bytes=801)), TRIPPED),
        (good(traced=replace(TRACED, peak=601)), TRIPPED),
        (good(coverage=Coverage(124_000_000, 123_999_999, {"b": 1})), TRIPPED),
        (record(outcome=Outcome.WRONG), TRIPPED),
        (record(outcome=Outcome.OUT_OF_MEMORY), TRIPPED),
        (record(outcome=Outcome.REFUSED), TRIPPED),
        (record(outcome=Outcome.FAILED), FAILED),
        (record(outcome=Outcome.TIMED_OUT), FAILED),
    ],
)
def test_what_got_worse_lost_or_broke_does_not_pass(new, code):
    found = ruling([good()], [new])
    assert found.exit_code == code
    assert [*found.tripped, *found.failed]
    assert not found.unknown


@pytest.mark.parametrize("bad", [Outcome.WRONG, Outcome.FAILED, Outcome.TIMED_OUT])
def test_what_was_broken_before_does_not_pass_either(bad):
    assert exit_code(record(outcome=bad), record(outcome=bad)) != FINE


@pytest.mark.parametrize("expected", [Outcome.OUT_OF_MEMORY, Outcome.REFUSED])
def test_what_was_expected_to_end_so_passes(expected):
    assert exit_code(record(outcome=expected), record(outcome=expected)) == FINE


@pytest.mark.parametrize("bad", [Outcome.WRONG, Outcome.FAILED])
def test_a_new_cell_passes_if_it_is_sound(bad):
    assert judged_apart(results(good()), results(good(), good("opacus"))).exit_code == FINE
    assert judged_apart(results(good()), results(good(), record("opacus", outcome=bad))).exit_code != FINE


def judged_apart(base, new, **rules):
    return judge(compare(base, new), new.records, Rules(**rules), set())


def test_a_missing_cell_does_not_pass():
    a, b = good("bk"), good("opacus")
    gone = judged_apart(results(a, b), results(a))
    assert [(c.cell, why) for c, why in gone.tripped] == [(b.cell, "the cell is missing")]
    cut = judged_apart(results(a, b), results(a, cells=[a.cell, b.cell]))
    assert cut.exit_code == TRIPPED
    never = judged_apart(results(a), results(a, cells=[a.cell, b.cell]))
    assert never.exit_code == TRIPPED


def test_of_a_cell_in_two_suites_the_one_that_broke_counts():
    broken, sound = record(outcome=Outcome.FAILED), good()
    changes = [c for new in (broken, sound) for c in compare(results(broken), results(new))]
    for records in ([broken, sound], [sound, broken]):
        assert judge(changes, records, Rules(), set()).exit_code == FAILED


def test_a_base_of_too_few_rounds_does_not_pass():
    few = seconds_of(*times(1.0, 5, rounds=5))
    assert exit_code(few, good()) == TRIPPED
    assert exit_code(good(), few, min_rounds=5) == FINE, "an interval it has none: a warning"


def test_other_hardware_cannot_be_told():
    found = ruling([good()], [good(seed=5)], environment=ELSEWHERE)
    assert found.exit_code == UNKNOWN
    assert {why for _, why in found.unknown} == {"other hardware: cpu made up -> another"}


def test_inconclusive_warns_or_fails():
    base, new = replace(good(), traced=None), good(traced=None)
    base.metrics[SECONDS] = Metric("s", times(1.0, 1, scatter=0.3))
    new.metrics[SECONDS] = Metric("s", times(1.05, 5, scatter=0.3))
    warned = ruling([base], [new])
    assert (warned.exit_code, len(warned.warned)) == (FINE, 1)
    assert "more rounds" in warned.warned[0][1]
    assert exit_code(base, new, on_inconclusive="fail") == UNKNOWN


def test_growth_within_its_limit_passes_with_a_warning():
    found = ruling([good()], [good(factor=1.2, seed=5)], allow={"seconds": 0.5})
    assert found.exit_code == FINE
    assert [why for _, why in found.warned] == ["within the 50% that are allowed"]
    assert exit_code(good(), good(traced=replace(TRACED, flops=1001)), allow={"flops": 0.01}) == FINE
    assert exit_code(good(), good(traced=replace(TRACED, flops=1011)), allow={"flops": 0.01}) == TRIPPED
    own = [{"select": "bk", "seconds": 0.5}]
    assert exit_code(good(), good(factor=1.2, seed=5), selection=own) == FINE
    assert exit_code(good("opacus"), good("opacus", factor=1.2, seed=5), selection=own) == TRIPPED


def test_what_got_better_passes_unless_the_base_is_to_be_kept_up_to_date():
    better = good(factor=0.8, seed=5, traced=replace(TRACED, flops=900))
    assert exit_code(good(), better) == FINE
    found = ruling([good()], [better], wanted=[Verdict.FASTER])
    assert found.exit_code == TRIPPED
    assert [(c.quantity, why) for c, why in found.tripped] == [("seconds", "the base is out of date")]
    assert exit_code(good(), better, wanted=[Verdict.LESS]) == TRIPPED


def test_the_most_certain_reason_decides():
    bad = record("a", outcome=Outcome.FAILED), good("b", traced=replace(TRACED, flops=1001))
    found = ruling([good("a"), good("b")], bad)
    assert (found.exit_code, len(found.failed), len(found.tripped)) == (TRIPPED, 1, 1)


def test_a_count_that_changed_with_the_software_is_blamed_on_neither():
    changes = compare(results(good()), results(good(traced=replace(TRACED, flops=1001, bytes=799))))
    assert blamed_on_versions(changes, []) == changes
    told = blamed_on_versions(changes, ["torch 2.9.0 -> 2.10.0"])
    found = {c.quantity: c for c in told if c.verdict is Verdict.NOT_COMPARABLE}
    assert set(found) == {"flops", "bytes"}
    assert all("torch 2.9.0 -> 2.10.0" in c.reason and "--base REF" in c.reason for c in found.values())
    assert judge(told, [good()], Rules(), set()).exit_code == UNKNOWN
    same = compare(results(good()), results(good()))
    assert blamed_on_versions(same, ["torch 2.9.0 -> 2.10.0"]) == same
