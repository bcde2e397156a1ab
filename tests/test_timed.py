import pytest

from dpbench.state import State
from dpbench.timed import AGAIN, SECONDS, THROTTLED, Timed

TOLD = {"seconds": [0.5, 0.25], "at": [0.0, 0.5], "started": 1e9, "warm_up": 4, "settled": True}


def test_rounds_are_kept_in_order_with_the_state_of_the_machine():
    timed = Timed()
    timed.add(TOLD, State(load=1.5))
    timed.add({**TOLD, "seconds": [1.0], "at": [0.0]})
    metric = timed.metrics()[SECONDS]
    assert (metric.samples, metric.at) == (((0.5, 0.25), (1.0,)), ((0.0, 0.5), (0.0,)))
    assert [r.state for r in timed.rounds] == [State(load=1.5), State()]


@pytest.mark.parametrize("name", [SECONDS, AGAIN])
def test_a_repeated_round_is_kept_under_a_name_of_its_own_and_counts_for_nothing(name):
    timed = Timed()
    timed.add(TOLD, repeated=True)
    assert set(timed.metrics(name)) == {name + THROTTLED}
    timed.add({**TOLD, "seconds": [1.0]})
    found = timed.metrics(name)
    assert (found[name].samples, found[name + THROTTLED].samples) == (((1.0,),), ((0.5, 0.25),))
    assert len(timed.rounds) == 1


def test_without_a_round_there_is_no_metric():
    assert Timed().metrics() == {}
