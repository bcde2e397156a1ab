from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dpbench.schedule import MOST, blocks, counts

some = st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 40), min_size=1)


@given(some, st.integers(0, 99))
def test_each_comes_as_often_as_it_should_and_once_a_block_at_most(wanted, seed):
    made = blocks(wanted, seed)
    assert Counter(name for block in made for name in block) == wanted
    assert all(len(set(block)) == len(block) for block in made)
    assert len(made) == max(wanted.values())


@given(some, st.integers(0, 99))
def test_the_order_is_a_function_of_the_seed(wanted, seed):
    assert blocks(wanted, seed) == blocks(dict(reversed(wanted.items())), seed)


@given(st.integers(2, 7), st.integers(1, 10), st.integers(0, 99))
def test_over_a_pair_of_blocks_everybody_has_the_same_mean_position(names, pairs, seed):
    made = blocks(dict.fromkeys("abcdefg"[:names], 2 * pairs), seed)
    for first, second in zip(made[::2], made[1::2], strict=True):
        assert second == first[::-1]


def test_another_seed_gives_another_order():
    assert len({str(blocks(dict.fromkeys("abcdefg", 1), seed)) for seed in range(20)}) > 10


@given(some, st.integers(0, 9))
def test_the_slow_ones_are_spread_over_the_whole_round(wanted, seed):
    made = blocks(wanted, seed)
    for name, count in wanted.items():
        places = [i for i, block in enumerate(made) if name in block]
        gaps = [b - a for a, b in pairwise(places)]
        assert all(gap <= -(-len(made) // count) for gap in gaps)


def test_the_budget_says_how_many_steps_there_are():
    found = counts({"fast": 1e-9, "middle": 0.3, "slow": 100.0}, budget_s=1.0)
    assert found == {"fast": MOST, "middle": 3, "slow": 1}


def test_nothing_to_time_is_no_block():
    assert blocks({}, 0) == []
