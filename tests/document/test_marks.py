"""Marks: which there are of a value, in which colour, and what stands in a number's place."""

import pytest

from dpbench.document.drawing import INK
from dpbench.document.marks import (
    EXPECTED,
    FORMULA,
    MEASURED,
    ORDER,
    PREDICTED,
    PUBLISHED,
    REDUCED,
    TRACED,
    colour,
    marked,
    word,
)
from dpbench.reporting import palette
from dpbench.reproduction import Number
from tests.reporting.test_reproduction import value


@pytest.mark.parametrize(
    ("given", "text"), [("oom", "OOM"), (">=40", "≥40"), ("<= 40", "≤ 40"), (">40", ">40"), ("refused: why", "refused")]
)
def test_words(given, text):
    assert word(Number(word=given)) == text


def test_a_ratio_at_a_reduced_size_is_marked_as_such_with_what_was_expected_there():
    given = value("bk", (1.0, 2.0, 3.0), (0.1, 0.2, 0.3), at="B=2", expected_here=Number(0.4))
    assert {mark: n.value for mark, n in marked(given, relative=True)} == {
        PUBLISHED: 0.1,
        PREDICTED: 0.2,
        EXPECTED: 0.4,
        REDUCED: 0.3,
    }


def test_a_number_at_a_reduced_size_is_not_held_against_one_at_full_size():
    assert [mark for mark, _ in marked(value("bk", (1.0, 2.0, 3.0), at="B=2"), relative=False)] == [
        PUBLISHED,
        PREDICTED,
    ]


def test_at_full_size_and_of_flops():
    assert [mark for mark, _ in marked(value("bk", (1.0, 2.0, 3.0)), relative=False)] == [
        PUBLISHED,
        PREDICTED,
        MEASURED,
    ]
    counted = value("bk", (1.0, "oom", 3.0), quantity="flops")
    assert [mark for mark, _ in marked(counted, relative=False)] == [PUBLISHED, FORMULA, TRACED]


def test_what_is_at_a_reduced_size_is_hollow_and_no_two_marks_look_alike():
    looks = {mark: mark.look(INK) for mark in ORDER}
    assert all(looks[mark]["markerfacecolor"] == "none" for mark in (EXPECTED, REDUCED))
    told = {(str(mark.shape), mark.size, mark.hollow) for mark in (PUBLISHED, PREDICTED, MEASURED, EXPECTED, REDUCED)}
    assert len(told) == 5


def test_modules_are_ink_and_implementations_as_everywhere():
    assert {colour(value(f"module {i}")) for i in ("1", "2a", "3", "5")} == {INK}
    assert colour(value("bk")) == palette.look("bk").colour
    assert colour(value("mine")) == palette.look("mine").colour
