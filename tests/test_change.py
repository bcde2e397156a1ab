import itertools
import json
import math

import pytest

from dpbench.change import QUANTITIES, Change, Verdict, turn, verdicts
from dpbench.errors import DpbenchError
from dpbench.ratios import Ratio
from dpbench.records import Outcome
from tests.records_for_tests import record

V = Verdict
BECAME = {
    Outcome.OUT_OF_MEMORY: V.NEW_OOM,
    Outcome.WRONG: V.NEWLY_WRONG,
    Outcome.REFUSED: V.NEWLY_REFUSED,
    Outcome.FAILED: V.NEWLY_FAILED,
    Outcome.TIMED_OUT: V.NEWLY_FAILED,
}


@pytest.mark.parametrize(("base", "new"), itertools.product(Outcome, Outcome))
def test_every_turn_of_a_cell_has_its_verdict(base, new):
    found = turn(base, new)
    if base is new:
        assert found is V.SAME
    elif new is Outcome.OK:
        assert found is (V.OOM_GONE if base is Outcome.OUT_OF_MEMORY else V.WORKS_NOW)
        assert found.is_better
    else:
        assert found is BECAME[new]
        assert found.is_worse


def test_no_verdict_is_both_worse_and_better():
    assert not any(v.is_worse and v.is_better for v in V)
    assert not any(v.is_worse or v.is_better for v in (V.SAME, V.INCONCLUSIVE, V.NOT_COMPARABLE, V.ONLY_IN_NEW))


def test_verdicts_are_named_as_they_are_printed_or_with_dashes():
    assert verdicts(["slower", " new OOM", "oom-gone", ""]) == {V.SLOWER, V.NEW_OOM, V.OOM_GONE}
    assert verdicts(["worse"]) == {v for v in V if v.is_worse}
    assert verdicts(str(v) for v in V) == set(V)
    with pytest.raises(DpbenchError, match="unknown verdict 'slowr'. Did you mean slower"):
        verdicts(["slowr"])


def test_a_change_is_json_whatever_its_figures():
    cell = record().cell
    for ratio in (None, Ratio(math.nan, None, None, 3), Ratio(1.5, 1.4, 1.6, 20)):
        for quantity in QUANTITIES:
            change = Change(
                cell=cell,
                quantity=quantity,
                verdict=V.SAME,
                base=0.0,
                new=math.inf,
                ratio=ratio,
                control=ratio,
            )
            json.dumps(change.as_json(), allow_nan=False)


def test_the_factor_is_that_of_the_ratio_or_of_the_figures():
    cell = record().cell
    assert Change(cell=cell, quantity="memory", verdict=V.MORE, base=2.0, new=3.0).factor == 1.5
    assert Change(cell=cell, quantity="memory", verdict=V.MORE, base=0.0, new=3.0).factor is None
    ratio = Ratio(1.1, 1.0, 1.2, 9)
    assert Change(cell=cell, quantity="seconds", verdict=V.SAME, base=2.0, new=3.0, ratio=ratio).factor == 1.1
