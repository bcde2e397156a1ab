import json

import pytest

from dpbench.document.island import columns, island, ranges
from dpbench.document.parts import Taken


def taken(line, **figures):
    return Taken("A", line, "bk", "gpt2", "ok", figures)


def column(records, name):
    (found,) = [c for c in columns(records) if c["name"] == name]
    return found


def test_a_value_that_repeats_is_there_once():
    found = column([taken(i, note="x" * 100) for i in range(50)], "note")
    assert found == {"name": "note", "values": ["x" * 100], "at": [0] * 50}


def test_values_that_are_all_different_stand_as_they_are():
    assert column([taken(i, t=i / 7) for i in range(5)], "t") == {"name": "t", "values": [i / 7 for i in range(5)]}


def test_what_a_record_has_not_is_null():
    assert column([taken(1, a=1), taken(2)], "a")["values"] == [1, None]


def test_one_and_true_are_not_the_same():
    found = column([taken(i, a=v) for i, v in enumerate([1, True, 1.0, 1, 1, 1, 1])], "a")
    assert found["at"] == [0, 1, 2, 0, 0, 0, 0]
    assert json.dumps(found["values"]) == "[1, true, 1.0]"


def test_numbers_that_are_none_are_named():
    assert json.loads(island([float("nan"), float("inf"), {"a": (float("-inf"), None)}])) == [
        *("nan", "inf"),
        {"a": ["-inf", None]},
    ]


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028", "\ud800", 'quote " and \\', "\N{ROCKET}"])
def test_no_text_ends_its_element_and_each_comes_back(text):
    assert "<" not in island([text])
    assert json.loads(island([text])) == [text]
    island([text]).encode("ascii")


def test_runs_of_numbers_are_short():
    assert ranges([5, 0, 1, 2, 2]) == "0-2,5"
    assert ranges([]) == ""
