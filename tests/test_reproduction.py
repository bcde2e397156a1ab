"""The result of a reproduction: differences by hand, and a file that is whole or not there."""

import errno
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dpbench.errors import DpbenchError
from dpbench.reproduction import Cited, Number, Reproduced, Reproduction, Three, Value, off, read, scored, share, write

OOM = Number(word="oom")


def number(given):
    return Number(word=given) if isinstance(given, str) else Number(given)


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        (110.0, 100.0, 0.1),
        (50.0, 100.0, -0.5),
        (None, 100.0, None),
        (100.0, None, None),
        ("refused: why", 100.0, None),
        ("refused: why", "oom", None),
        ("oom", "oom", 0.0),
        ("oom", 100.0, math.inf),
        (100.0, "oom", math.inf),
        ("oom", "no ratio: nonprivate is oom", None),
        (58.0, ">40", 0.0),
        (58.0, ">=40", 0.0),
        (30.0, ">=40", -0.25),
        (30.0, "<40", 0.0),
        (50.0, "<= 40", 0.25),
        ("oom", ">=40", math.inf),
        ("refused: why", ">=40", None),
    ],
)
def test_how_far_ours_is_from_theirs(ours, theirs, difference):
    assert off(number(ours), number(theirs)) == pytest.approx(difference)


def test_a_share_counts_what_can_be_compared():
    found = share([0.05, -0.10, 0.2, -0.26, math.inf])
    assert (found.compared, found.within_10, found.within_25) == (5, 2, 3)


def value(published=100.0, predicted=110.0, **more):
    given = {"row": "m B=8", "quantity": "throughput", "unit": "examples/s", "implementation": "bk"}
    return Value(**given, absolute=Three(number(published), number(predicted)), **more)


@pytest.mark.parametrize(("predicted", "far"), [(115.0, False), (116.0, True), (84.0, True), (None, False)])
def test_a_reason_is_due_over_15_percent(predicted, far):
    assert value(predicted=predicted).absolute.far is far


def test_within_an_error_of_reading_no_reason_is_due_and_over_10_percent_of_it_nothing_is_scored():
    sharp, blurred = (Three(Number(3.0, low=3 - e, high=3 + e), Number(4.0)) for e in (0.3, 0.31))
    assert (sharp.blurred, blurred.blurred) == (False, True)
    assert sharp.far
    assert blurred.far, "farther than it may have been misread"
    assert not Three(Number(3.0, low=2.0, high=4.0), Number(3.9)).far
    assert [scored([replace(value(), absolute=three)], lambda v: v.absolute) for three in (sharp, blurred)] == [
        [pytest.approx(1 / 3)],
        [],
    ]


def reproduction(*figures, **more):
    given = {"command": "dpbench reproduce", "started": "2030-01-01", "device": None, "environment": {"a": [1, "x"]}}
    return Reproduction(**given | more, papers=(Cited(id="p", citation="C"),), figures=figures, asked=("one", "two"))


def figure(*values, **more):
    given = {"id": "one", "title": "First", "kind": "cost", "printed": "", "read": "", "known": {}, "card": "T4"}
    return Reproduced(**given | more, values=values)


def test_what_is_written_is_read_again(tmp_path):
    ratio = Three(Number(word="oom"), Number(2.0, low=1.5, high=2.5), reason="r", sure="open")
    far = value(ratio=ratio, sizes={"B": 8})
    made = reproduction(figure(far, layers={"m": (("fc", 1, 2, 3),)}, files=("a.jsonl",)), card="T4", measured=False)
    write(made, tmp_path)
    assert read(tmp_path) == read(tmp_path / "reproduction.json") == made


def test_a_figure_takes_the_place_of_its_earlier_one():
    made = reproduction(figure()).with_figure(figure(id="two")).with_figure(figure(title="Again"))
    assert [(f.id, f.title) for f in made.figures] == [("two", "First"), ("one", "Again")]


def test_what_is_no_reproduction_is_said(tmp_path):
    with pytest.raises(DpbenchError, match="cannot read .*expected what dpbench reproduce wrote"):
        read(tmp_path)
    file = tmp_path / "reproduction.json"
    for text, said in (("{", "is not JSON"), ("[1]", "schema is"), ('{"schema": 9}', "schema is 9, expected 2")):
        file.write_text(text)
        with pytest.raises(DpbenchError, match=said):
            read(file)
    write(reproduction(), tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"colour": "red"}))
    with pytest.raises(DpbenchError, match="colour"):
        read(file)


def test_a_full_disk_leaves_the_file_from_before_and_says_how_to_go_on(tmp_path, monkeypatch):
    write(reproduction(), tmp_path)
    before = (tmp_path / "reproduction.json").read_bytes()

    def full(path, text, **more):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        DpbenchError, match=f"No space left on device; go on with: dpbench reproduce --resume {tmp_path}"
    ):
        write(reproduction(figure()), tmp_path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [before]
