import math

import pytest

from dpbench.change import Change, Verdict
from dpbench.comparison import compare
from dpbench.ratios import Ratio
from dpbench.records import Cell, Outcome
from dpbench.reporting import changes as reporting
from tests.records_for_tests import record, workload
from tests.test_comparison import TRACED, good, one, replace, results
from tests.test_slowdown import times

V = Verdict
CELL = Cell("bk", workload())


def timed(value, low=None, high=None, verdict=V.SLOWER, **more):
    return Change(cell=CELL, quantity="seconds", verdict=verdict, ratio=Ratio(value, low, high, 20), **more)


def size(base, new, verdict, quantity="memory"):
    return Change(cell=CELL, quantity=quantity, verdict=verdict, base=base, new=new)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (timed(1.22, 1.18, 1.26), "1.22x slower [1.18, 1.26]"),
        (timed(0.8, 0.78, 0.82, V.FASTER), "1.25x faster [1.22, 1.28]"),
        (timed(1.04, 0.98, 1.1, V.INCONCLUSIVE), "1.04x inconclusive [0.98, 1.10]"),
        (timed(1.0, 0.99, 1.01, V.SAME), "same [0.99, 1.01]"),
        (timed(math.nan, verdict=V.NOT_COMPARABLE), "not comparable"),
        (size(2e9, 3e9, V.MORE), "1.50x more"),
        (size(2e9, 1e9, V.LESS), "2.00x less"),
        (size(2e9, 0.0, V.LESS), "less"),
        (size(0.0, 2e9, V.MORE), "more"),
        (size(1_000_000, 1_000_001, V.MORE, "flops"), "1e-06 more"),
        (Change(cell=CELL, quantity="outcome", verdict=V.NEW_OOM), "new OOM"),
    ],
)
def test_how_much_and_how_sure_in_the_direction_of_the_verdict(change, said):
    assert f"{reporting.said(change)} {reporting.interval(change.ratio, change.verdict)}".strip() == said
    assert said.split()[0] in reporting.sentence(change)


def test_figures_that_round_to_the_same_are_shown_in_full():
    assert "1,000,000 -> 1,000,001" in reporting.sentence(size(1_000_000, 1_000_001, V.MORE, "flops"))


def test_worse_comes_first_then_unclear_then_better_and_the_larger_before_the_smaller():
    order = [
        timed(2.0, 1.9, 2.1),
        timed(1.2, 1.1, 1.3),
        timed(1.04, 0.9, 1.2, V.INCONCLUSIVE),
        timed(0.5, 0.4, 0.6, V.FASTER),
        timed(0.9, 0.8, 0.95, V.FASTER),
        timed(1.0, 0.99, 1.01, V.SAME),
    ]
    mixed = [order[i] for i in (3, 5, 1, 4, 0, 2)]
    assert sorted(mixed, key=reporting.weight) == order


def test_what_is_the_same_is_left_out_unless_asked_for():
    changes = compare(one(good()), one(good(factor=1.3, seed=5)))
    shown = [line for line in reporting.lines(changes) if "bk" in line]
    assert len(shown) == 1
    assert "slower" in shown[0]
    assert len([line for line in reporting.lines(changes, everything=True) if "bk" in line]) == len(changes)


def test_a_reason_is_said_once_for_all_cells_that_have_it():
    short = {name: replace(good(name), metrics=record(name, seconds=times(1.0, 1, rounds=3)).metrics) for name in "abc"}
    text = "\n".join(reporting.lines(compare(results(*short.values()), results(*short.values()))))
    assert text.count("3 rounds, an interval needs 6") == 1
    assert "and 2 more" in text


def test_the_summary_counts_verdicts_and_takes_the_geometric_mean_of_what_has_a_ratio():
    spoiled = record("c", seconds=(*times(1.0, 1)[1:], (math.nan,)))
    base = results(good("a", 1.0, 1), good("b", 1.0, 2), replace(spoiled, traced=TRACED))
    new = results(good("a", 1.21, 3), good("b", 1.0, 4), replace(spoiled, traced=TRACED))
    lines = reporting.summary(compare(base, new, reference=None))
    assert lines[0] == "outcome: 3 same"
    (seconds,) = [line for line in lines if line.startswith("seconds")]
    assert seconds.startswith("seconds: 1 same, 1 slower, 1 not comparable; geometric mean of new to base 1.")
    mean = float(seconds.split("new to base ")[1].split(" ")[0])
    assert mean == pytest.approx(math.sqrt(1.21), rel=0.01)
    assert not any("flops" in line and "geometric" in line for line in lines)


def test_every_outcome_can_be_said():
    changes = [c for o in Outcome for c in compare(one(good()), one(record(outcome=o)))]
    assert reporting.lines(changes, everything=True)
