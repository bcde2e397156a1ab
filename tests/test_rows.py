from dataclasses import replace

import pytest

from dpbench.coverage import NormMethod
from dpbench.records import Outcome, Roofline, Traced
from dpbench.rows import COLUMNS, rows
from tests.records_for_tests import PARTIAL, record, workload

SIX = [[0.1 * (1 + i)] for i in range(6)]


def by_name(records, **options):
    return {row.implementation: row for row in rows(records, **options)}


def test_figures_follow_from_the_median_of_the_rounds():
    (row,) = rows([record(on=workload(batch=8), seconds=[[0.5, 9.0, 0.5], [0.4], [0.8]], memory=3e9, tokens=10)])
    assert (row.seconds, row.examples_per_s, row.tokens_per_s) == (0.5, 16.0, 160.0)
    assert (row.memory, row.process_peak, row.resident) == (3e9, 4e9, 5e8)
    assert (row.rounds, row.seconds_low, row.parameters) == (3, None, 124_000_000)


def test_throughput_counts_logical_examples():
    (row,) = rows([record(on=workload(batch=8, logical_batch=20), seconds=[[0.5]])])
    assert row.examples_per_s == 40.0


def test_ratios_are_paired_by_round():
    # Each round is slower than the one before; the ratio within each is 2.
    made = by_name([record("nonprivate", seconds=SIX, memory=1e9), record("bk", seconds=[[2 * r[0]] for r in SIX])])
    assert made["bk"].speed_relative == pytest.approx(0.5)
    assert made["bk"].speed_relative_low == pytest.approx(0.5)
    assert made["bk"].memory_relative == pytest.approx(2)
    assert made["nonprivate"].speed_relative == 1


def test_where_each_has_a_batch_of_its_own_throughputs_are_compared():
    most = workload(batch="max")
    plain = replace(record("nonprivate", most, seconds=[[2.0], [4.0]]), largest=40)
    private = replace(record("bk", most, seconds=[[1.0], [2.0]]), largest=10)
    made = by_name([plain, private])
    assert (made["nonprivate"].examples_per_s, made["bk"].examples_per_s) == (40 / 3, 10 / 1.5)
    assert made["bk"].speed_relative == pytest.approx(0.5)
    assert (made["bk"].batch, made["bk"].flat()["batch"], made["bk"].flat()["batch_is_max"]) == (10, 10, True)


def test_ratios_need_the_same_workload():
    made = by_name([record("nonprivate", workload(batch=4)), record("bk", workload(batch=8))])
    assert (made["bk"].speed_relative, made["bk"].memory_relative) == (None, None)


def test_another_baseline_may_be_named():
    records = [
        record("nonprivate", seconds=[[1.0]]),
        record("bk", seconds=[[2.0]]),
        record("opacus", seconds=[[4.0]]),
    ]
    assert by_name(records, baseline="opacus")["bk"].speed_relative == pytest.approx(2)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_what_is_not_ok_has_no_figures_and_is_no_baseline(outcome):
    bad = record("nonprivate", outcome=Outcome.OK)
    object.__setattr__(bad, "outcome", outcome)
    made = by_name([bad, record("bk")])
    assert (made["nonprivate"].seconds, made["nonprivate"].memory) == (None, None)
    assert made["bk"].speed_relative is None
    assert made["bk"].seconds is not None


def test_cuda_memory_is_what_was_allocated():
    made = record(memory=3e9)
    made.metrics["peak_allocated"] = made.metrics.pop("peak_live")
    assert rows([made])[0].memory == 3e9


def test_a_flat_row_has_the_documented_columns():
    flat = rows([record()])[0].flat()
    assert list(flat) == list(COLUMNS)
    assert (flat["batch"], flat["outcome"], type(flat["outcome"])) == (8, "ok", str)


def test_outliers_are_counted():
    assert rows([record(seconds=[[1.0, 1.01, 0.99, 1.0, 5.0]] * 2)])[0].outliers == 2


def test_the_coverage_is_in_columns_of_its_own():
    (row,) = rows([record(coverage=PARTIAL)])
    flat = row.flat()
    assert (flat["coverage"], flat["frozen"]) == (0.88, "cls_token, pos_embed")
    assert {m: flat[m] for m in NormMethod} == {
        "ghost": 0.85, "instantiated": 0, "vector": 0, "generic": 0.03, "loop": 0
    }  # fmt: skip
    untold = rows([record(coverage=None)])[0].flat()
    assert all(untold[name] is None for name in ("coverage", *NormMethod))


def test_who_refused_covers_nothing_and_is_not_partial():
    (row,) = rows([record(outcome=Outcome.REFUSED, coverage=None)])
    assert (row.coverage, row.partial) == (0, False)


def test_what_trained_a_part_is_marked_and_is_no_baseline():
    made = by_name([record("nonprivate"), record("bk", coverage=PARTIAL)])
    assert (made["nonprivate"].partial, made["bk"].partial) == (False, True)
    assert made["bk"].speed_relative == 1
    made = by_name([record("nonprivate", coverage=PARTIAL), record("bk")])
    assert made["bk"].speed_relative is None
    assert made["nonprivate"].speed_relative is None


def test_what_was_predicted_is_there_with_the_card():
    traced = Traced(flops=1, bytes=1, peak=1, roofline=Roofline("here", 0.25, 0.5, 1.0))
    one, two, three = rows([replace(record(), traced=t) for t in (traced, replace(traced, roofline=None), None)])
    assert (one.predicted_seconds, one.predicted_card) == (0.5, "here")
    assert {two.predicted_seconds, two.predicted_card, three.predicted_seconds, three.predicted_card} == {None}
