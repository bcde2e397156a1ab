from dataclasses import replace

from dpbench.document.sources import material
from dpbench.document.trust import warnings
from dpbench.records import Round
from dpbench.state import State
from tests.document.results_for_tests import OTHER, file, of, timed
from tests.records_for_tests import record


def disturbed(**state):
    rounds = tuple(Round(started=1.0, warm_up=3, settled=False, state=State(**state)) for _ in range(6))
    return replace(timed("bk", 1.0), rounds=rounds)


def test_quiet_rounds_need_no_warning(tmp_path):
    assert list(warnings(of(tmp_path, timed("bk", 1.0)))) == []


def test_what_disturbed_them_is_told(tmp_path):
    (unsettled, held, busy) = warnings(of(tmp_path, disturbed(throttled=("heat",), others=0.5)))
    assert unsettled == "Steps of 1 cell were still getting faster when their warm-up was over"
    assert held == "A clock was held down in rounds of 1 cell, which were repeated in vain"
    assert busy == "Other processes took up to 50% of the machine's CPU time while 1 cell was timed"


def test_scatter_names_the_worst(tmp_path):
    (told,) = warnings(of(tmp_path, record("bk", seconds=[[1.0, 1.0, 2.0, 2.0, 2.0]] * 6)))
    assert told == (
        "Timings of 1 cell scatter by more than 20% of their median between the quartiles, those of bk on "
        "transformers:gpt2 B=8 by 50%"
    )


def test_what_is_true_of_several_sources_is_told_once(tmp_path):
    few = record("bk", seconds=[[1.0]])
    files = [file(tmp_path / name, [few]) for name in "abc"]
    assert [said.partition(":")[0] for said in warnings(material(files))] == ["Sources A, B, C"]
    assert "3 cells have as few as 1 round" in next(warnings(material(files)))


def test_the_sources_that_it_is_true_of_are_named(tmp_path):
    few = record("bk", seconds=[[1.0]])
    files = [file(tmp_path / "a", [few]), file(tmp_path / "b", [timed("bk", 1.0)], OTHER)]
    assert list(warnings(material(files))) == [
        "Source A: 1 cell has as few as 1 round: an interval needs 6, and differences between such "
        "cells are not claimed"
    ]
