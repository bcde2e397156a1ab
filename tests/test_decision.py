"""The layerwise decision, by arithmetic: 2 T^2 < p d, strictly, and the first place where it holds."""

import pytest

from dpbench.decision import Decision, first_ghost

WIDE, LONG, EVEN = Decision("wide", 10, 64, 64), Decision("long", 100, 27, 64), Decision("even", 2, 2, 4)
"""2T^2 against pd: 200 and 4096; 20000 and 1728; 8 and 8."""


def test_less_space_is_a_ghost_norm_and_as_much_is_not():
    assert [(a.grams, a.gradient) for a in (WIDE, LONG, EVEN)] == [(200, 4096), (20000, 1728), (8, 8)]
    assert [a.is_ghost for a in (WIDE, LONG, EVEN)] == [True, False, False]


def test_the_first_place_is_counted_from_1():
    assert first_ghost([LONG, EVEN, WIDE, WIDE]) == 3
    assert first_ghost([WIDE]) == 1
    assert first_ghost([LONG, EVEN]) is None
    assert first_ghost([]) is None


def test_sizes_in_a_file_are_numbers():
    assert Decision.of("a", 1, 2, 3) == Decision("a", 1, 2, 3)
    for told in (["a", 1, 2], ["a", "b", 1, 2], ["a", None, 1, 2], 1):
        with pytest.raises((TypeError, ValueError)):
            Decision.of(*told)
