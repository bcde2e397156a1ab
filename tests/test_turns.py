"""One round of processes that take turns."""

from collections import Counter

import pytest

from dpbench.job import Job
from dpbench.records import Outcome
from dpbench.supervise import Patience
from dpbench.turns import LEAST, TURNS, Seat, Taking
from tests.children_in_turns import QUIET, Launcher, Stage
from tests.noisy_machine import WORKLOAD, Machine

SEATS = ("base", "control", "new")


def taking(stage, seed=0, budget_s=1.0, names=("bk",)):
    job = Job(kind="turns", workload=WORKLOAD, implementations=tuple(names), seed=seed, budget_s=budget_s)

    def clock():
        return stage.machine.now

    seats = {seat: Seat(Launcher(stage, seat), job, Patience(600, clock)) for seat in SEATS}
    return Taking(seats, seed)


def taken(stage, **how):
    made = taking(stage, **how)
    who = list(made)
    return made.taken, who


def test_everybody_is_warm_before_anybody_is_timed_and_who_is_at_work_is_told():
    stage = Stage()
    found, who = taken(stage)
    assert who[:3] == [(seat, "bk") for seat in SEATS]
    assert set(found.found) == set(SEATS)
    assert not found.ended
    assert not stage.alive()


def test_everybody_has_as_many_turns_and_the_order_is_turned_round_every_second_time():
    stage = Stage()
    taken(stage)
    order = stage.turns[1:]
    assert Counter(order) == dict.fromkeys(SEATS, TURNS)
    blocks = [order[i : i + 3] for i in range(0, len(order), 3)]
    assert all(set(block) == set(SEATS) for block in blocks)
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        assert second == first[::-1], "over the two, each has the same mean position"


def test_the_order_is_drawn_with_the_seed():
    orders = {}
    for seed in (*range(12), *range(12)):
        stage = Stage()
        taken(stage, seed=seed)
        orders.setdefault(seed, []).append(tuple(stage.turns[1:]))
    assert all(first == second for first, second in orders.values())
    firsts = Counter(first[0] for first, _ in orders.values())
    assert set(firsts) == set(SEATS), "everybody is first in some round"


def test_all_turns_together_take_the_budget_where_steps_are_short():
    stage = Stage(machine=Machine(seed=1, step=0.001, **QUIET))
    found, _ = taken(stage, budget_s=0.6)
    for seat in SEATS:
        assert sum(found.found[seat]["bk"]["seconds"]) == pytest.approx(0.6, rel=0.1)


def test_long_steps_have_the_least_number_of_turns():
    stage = Stage(machine=Machine(seed=1, step=5.0, **QUIET))
    found, _ = taken(stage)
    assert [len(found.found[seat]["bk"]["seconds"]) for seat in SEATS] == [LEAST] * 3


def test_a_machine_that_drifts_falls_on_all_alike():
    """Twice as slow after every few seconds: one after the other, the last would be several times slower."""
    stage = Stage(machine=Machine(seed=1, step=0.02, **{**QUIET, "drift": 0.5}))
    found, _ = taken(stage)
    middle = {seat: sorted(found.found[seat]["bk"]["seconds"])[25] for seat in SEATS}
    assert max(middle.values()) / min(middle.values()) < 1.02


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("turn", [0, 1, 3])
@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        ("dies", Outcome.FAILED),
        ("hangs", Outcome.TIMED_OUT),
        ("refused", Outcome.REFUSED),
        ("out of memory", Outcome.OUT_OF_MEMORY),
        ("failed", Outcome.FAILED),
    ],
)
def test_who_ends_ends_the_round_and_nobody_is_left(seat, turn, trouble, outcome):
    stage = Stage(trouble={(seat, "turns", "bk", turn): trouble})
    found, _ = taken(stage)
    assert [(who, end.implementation, end.outcome) for who, end in found.ended] == [(seat, "bk", outcome)]
    assert not found.found
    assert not stage.alive()


def test_a_round_that_is_broken_off_leaves_nobody():
    stage = Stage()
    round_ = iter(taking(stage))
    for _ in SEATS:
        next(round_)
    assert len(stage.alive()) == 3
    round_.close()
    assert not stage.alive()
