"""Each fault once; ``make faults`` does each many times."""

from __future__ import annotations

import random
import sys

import pytest

from tests.faults.all import FAULTS
from tests.faults.worker_rubbish import WHAT, strike

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes, signals and limits as Linux has them")
BETTER_OFTEN = {"server_stopped", "worker_stopped", "temporary_full", "worker_hungry", "two_runs"}
"""They wait for a time out or take two runs; in ``make faults`` alone, and their parts in tests of a module."""
COARSE = {"file_cut": {"every": 23}, "file_flipped": {"every": 23}, "disk_full": {"mounting": False}}


def well(struck):
    assert struck.odd == []
    assert (struck.lost, struck.wrong, struck.left) == (0, 0, 0)


@pytest.mark.parametrize("name", [n for n in FAULTS if n not in BETTER_OFTEN])
def test_no_cell_is_lost_no_figure_wrong_no_process_left(name, tmp_path):
    well(FAULTS[name].strike(tmp_path, random.Random(1), **COARSE.get(name, {})))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BETTER_OFTEN))
def test_the_same_of_those_that_take_their_time(name, tmp_path):
    well(FAULTS[name].strike(tmp_path, random.Random(1)))


@pytest.mark.slow
@pytest.mark.parametrize("what", sorted(WHAT))
def test_each_kind_of_rubbish(what, tmp_path):
    well(strike(tmp_path, random.Random(1), [what]))
