import pytest

from dpbench.document.standing import fastest, leanest
from dpbench.rows import rows
from tests.document.results_for_tests import LARGEST, shaky, timed, wrong
from tests.records_for_tests import PARTIAL, record


def test_the_fastest_leads_by_the_ratio_of_times():
    found = fastest(rows([timed("nonprivate", 1.0), timed("bk", 1.1), timed("opacus", 1.65)]))
    assert found.row.implementation == "bk"
    assert (found.ties, found.unsure) == ((), False)
    assert found.next.implementation == "opacus"
    assert found.lead.value == pytest.approx(1.5)


def test_what_wins_some_rounds_and_loses_others_cannot_be_told_apart():
    found = fastest(rows([record("bk", seconds=shaky(1.0)), timed("opacus", 1.01), timed("vmap", 5.0)]))
    assert found.row.implementation in ("bk", "opacus")
    assert len(found.ties) == 1
    assert found.next.implementation == "vmap"


def test_without_rounds_enough_nothing_is_claimed():
    few = [record(n, seconds=[[s] * 3] * 5) for n, s in (("bk", 1.0), ("opacus", 9.0))]
    found = fastest(rows(few))
    assert (found.row.implementation, found.unsure, found.next) == ("bk", True, None)


def test_neither_the_baseline_nor_what_is_wrong_or_trained_less_stands():
    partial = timed("vmap", 0.1, coverage=PARTIAL)
    found = fastest(rows([timed("nonprivate", 0.1), wrong("ghostclip"), partial, timed("bk", 1.0)]))
    assert (found.row.implementation, found.next, found.ties) == ("bk", None, ())
    assert fastest(rows([timed("nonprivate", 0.1), wrong("ghostclip"), partial])) is None


def test_peaks_that_are_shown_alike_are_both_the_leanest():
    lean = [timed("bk", 1, memory=1e9), timed("opacus", 1, memory=1.001e9), timed("vmap", 1, memory=2e9)]
    assert [row.implementation for row in leanest(rows(lean))] == ["bk", "opacus"]
    assert leanest(rows([timed("nonprivate", 1, memory=1)])) == []


def test_at_the_largest_batch_nobody_is_lean():
    assert leanest(rows([timed("bk", 1.0, LARGEST)])) == []
