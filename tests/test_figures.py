from dataclasses import replace

import pytest

from dpbench.errors import DpbenchError
from dpbench.figures import FIGURES
from dpbench.records import Traced
from dpbench.rows import rows
from tests.records_for_tests import record, workload

SIX = [[0.1 * (1 + i)] for i in range(6)]


def figure(name, *records, as_ratio=False):
    """Of the last of the records."""
    row = rows(records)[-1]
    return FIGURES[name].of(records[-1], row, as_ratio)


def test_seconds_are_those_of_a_step_with_their_interval():
    found = figure("seconds", record(seconds=SIX))
    assert found.value == pytest.approx(0.35)
    assert 0.1 <= found.low < 0.35 < found.high <= 0.6


def test_seconds_are_of_one_example_where_the_batch_is_what_fits():
    made = replace(record(on=workload(batch="max"), seconds=[[2.0]]), largest=40)
    assert figure("seconds", made).value == pytest.approx(0.05)
    same_step = replace(record(on=workload(batch="max", logical_batch=64), seconds=[[2.0]]), largest=40)
    assert figure("seconds", same_step).value == 2.0


def test_a_ratio_of_seconds_is_larger_where_it_is_slower():
    slower = [[1.5 * r[0] * (1.1 if i % 2 else 1)] for i, r in enumerate(SIX)]
    found = figure("seconds", record("nonprivate", seconds=SIX), record("bk", seconds=slower), as_ratio=True)
    assert found.value == pytest.approx(1.5 * 1.1**0.5)
    assert 1.5 * (1 - 1e-12) <= found.low < found.value < found.high <= 1.65 * (1 + 1e-12)
    assert figure("seconds", record("bk", seconds=SIX), as_ratio=True) is None


def test_memory_has_ratios_and_needs_no_interval():
    pair = record("nonprivate", memory=2e9), record("bk", memory=3e9)
    assert figure("memory", *pair).value == 3e9
    assert figure("memory", *pair, as_ratio=True).value == 1.5
    assert figure("process_peak", *pair).value == 4e9


def test_traced_costs_are_counted():
    made = replace(record(), traced=Traced(flops=10, bytes=20, peak=30))
    assert [figure(f"traced_{n}", made).value for n in ("flops", "bytes", "peak")] == [10, 20, 30]
    assert figure("traced_flops", record()) is None
    assert [n for n, f in FIGURES.items() if f.counted] == ["traced_flops", "traced_bytes", "traced_peak"]


def test_errors_below_the_rounding_of_float64_are_alike():
    assert figure("error", record(error=0.0)) == figure("error", record(error=1e-17))
    assert figure("error", record(error=3e-15)).value == 3e-15


def test_what_has_no_ratio_says_what_has():
    with pytest.raises(DpbenchError, match="error cannot be given relative to bk, expected one of seconds, memory"):
        FIGURES["error"].check_relative("error", "bk")
    FIGURES["memory"].check_relative("memory", "bk")
