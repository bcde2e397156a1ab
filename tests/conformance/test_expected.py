"""What an implementation is known to fail."""

from __future__ import annotations

import pytest

from dpbench.conformance.expected import Expected, declared
from dpbench.conformance.verdict import Ruling, Verdict
from dpbench.errors import DpbenchError


def written(directory, text):
    source = directory / "mine.py"
    source.with_suffix(".toml").write_text(text)
    return declared(source)


def verdict(ruling, check="linear/two-axes"):
    return Verdict(implementation="mine", check=check, ruling=ruling)


def test_without_a_file_everything_is_to_be_right(tmp_path):
    found, path = declared(tmp_path / "mine.py")
    assert (found, path) == (Expected(), None)
    assert declared(None) == (Expected(), None)
    assert found.surprise(verdict(Ruling.RIGHT)) == ""
    assert found.surprise(verdict(Ruling.WRONG)) == "wrong, not declared"


def test_worse_and_better_than_declared_are_both_surprises(tmp_path):
    found, path = written(tmp_path, '[refuses]\n"linear/*" = "why"\n[wrong]\n"linear/two-axes" = "later is not seen"')
    assert path == tmp_path / "mine.toml"
    assert found.surprise(verdict(Ruling.REFUSES)) == ""
    assert found.surprise(verdict(Ruling.RIGHT)) == "right, declared as refuses"
    assert found.surprise(verdict(Ruling.WRONG)) == "wrong, declared as refuses"
    assert found.surprise(verdict(Ruling.WRONG, "conv/1d")) == "wrong, not declared"
    assert found.of("linear/two-axes").reason == "why"


def test_rulings_go_from_right_to_silently_wrong():
    order = [Ruling.RIGHT, Ruling.REFUSES, Ruling.FREEZES, Ruling.CRASHES, Ruling.WRONG]
    assert list(Ruling) == order
    assert Ruling.WRONG.worse_than(Ruling.CRASHES)
    assert not Ruling.RIGHT.worse_than(Ruling.RIGHT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrong", "is no TOML"),
        ('[refused]\n"a" = "b"', "Did you mean refuses"),
        ("[right]\n", "unknown section"),
        ('wrong = "all"', "expected a section of names and reasons"),
        ('[wrong]\n"a/b" = true', "expected the reason"),
        ('[wrong]\n"a/b" = ""', "expected the reason"),
        ('also = "there.toml"', "also is 'there.toml'; expected the path of a file, from /"),
        ("also = 3", "also is 3; expected the path of a file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, text, message):
    with pytest.raises(DpbenchError, match=message):
        written(tmp_path, text)


@pytest.mark.parametrize("place", ["all.toml", "../all.toml"])
def test_one_file_may_take_over_what_another_says(tmp_path, place):
    tmp_path = tmp_path / "within"
    tmp_path.mkdir()
    (tmp_path / place).write_text('[refuses]\n"linear/*" = "all"\n"conv/1d" = "all"\n')
    found, _ = written(tmp_path, f'also = "{place}"\n[wrong]\n"linear/*" = "own"')
    assert [found.of(name).reason for name in ("linear/two-axes", "conv/1d")] == ["own", "all"]


def test_what_is_declared_has_to_exist(tmp_path):
    found, _ = written(tmp_path, '[wrong]\n"linear/to-axes" = "why"')
    with pytest.raises(DpbenchError, match=r"Did you mean linear/two-axes\? Declared in mine.toml"):
        found.check_names(["linear/two-axes", "conv/1d"], "mine.toml")
    found.check_names(["linear/to-axes"], "mine.toml")
