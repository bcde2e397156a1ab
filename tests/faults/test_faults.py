"""Each fault once; ``make faults`` does each many times."""

from __future__ import annotations

import random
import sys

import pytest

from tests.faults.all import FAULTS
from tests.faults.worker_rubbish import WHAT, strike

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes, signals and limits as Linux has them")
FAST = ("parent_killed", "worker_killed", "worker_rubbish", "signalled", "nobody_listens", "file_cut", "file_flipped")
COARSE = {"file_cut": {"every": 23}, "file_flipped": {"every": 23}}


def well(struck):
    assert struck.odd == []
    assert (struck.lost, struck.wrong, struck.left) == (0, 0, 0)


@pytest.mark.parametrize("name", FAST)
def test_no_cell_is_lost_no_figure_wrong_no_process_left(name, tmp_path):
    well(FAULTS[name].strike(tmp_path, random.Random(1), **COARSE.get(name, {})))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in FAST])
def test_the_same_of_those_that_take_more_time(name, tmp_path):
    well(FAULTS[name].strike(tmp_path, random.Random(1)))


@pytest.mark.slow
@pytest.mark.parametrize("what", sorted(WHAT))
def test_each_kind_of_rubbish(what, tmp_path):
    well(strike(tmp_path, random.Random(1), [what]))
