"""Records as the quantities that papers print, by hand; what is not right is a word in every one of them."""

from dataclasses import replace

import pytest

from dpbench.records import Outcome, Roofline, Traced
from dpbench.reproducing.measuring import Measured
from dpbench.reproduction import Number
from dpbench.rows import rows
from tests.document.results_for_tests import steady, wrong
from tests.records_for_tests import PARTIAL, record

QUANTITIES = ("throughput", "max_batch", "memory", "flops")
TRACED = Traced(flops=9, bytes=8, peak=7, roofline=Roofline("here", 0.1, 0.4, 0.5))


def measured(*records):
    return Measured({row.record.cell: row for row in rows([replace(r, traced=TRACED) for r in records])})


def test_by_hand():
    one = record("bk")  # 8 examples in 0.5 s, 2 GB above 0.5 GB
    found = measured(one)
    assert [found.of(one.cell, quantity).value for quantity in QUANTITIES] == [16.0, 8.0, 2.5, 9.0]
    assert found.expected(one.cell) == 0.4 / 8


def test_an_interval_of_a_rate_is_that_of_its_seconds_upside_down():
    seconds = [[0.5 + 0.01 * i] * 3 for i in range(6)]
    one = record("bk", seconds=seconds)
    time = rows([one])[0].time
    found = measured(one).of(one.cell, "throughput")
    assert (found.low, found.high) == pytest.approx((8 / time.high, 8 / time.low))
    assert found.low < found.value < found.high


def test_ratios_of_speed_are_those_of_paired_rounds():
    base, ours = record("nonprivate", seconds=steady(0.25)), record("bk", seconds=steady(0.5))
    found = measured(base, ours)
    assert found.ratio(ours.cell, "throughput").value == pytest.approx(0.5)
    assert found.ratio(ours.cell, "memory") is None


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (wrong("bk"), "wrong: wte.weight differs by 0.13"),
        (record("bk", outcome=Outcome.REFUSED, reason="r"), "refused: r"),
        (record("bk", outcome=Outcome.FAILED, reason="r"), "failed: r"),
        (record("bk", outcome=Outcome.TIMED_OUT, reason="r"), "timed out: r"),
        (record("bk", outcome=Outcome.OUT_OF_MEMORY, reason="r"), "oom"),
        (record("bk", coverage=PARTIAL), "not all parameters trained: cls_token, pos_embed"),
    ],
    ids=["wrong", "refused", "failed", "timed out", "oom", "partial"],
)
def test_what_is_not_right_is_a_word_and_no_number(bad, word):
    found = measured(record("nonprivate"), bad)
    for quantity in QUANTITIES:
        assert found.of(bad.cell, quantity) == Number(word=word)
        assert found.ratio(bad.cell, quantity) is None
    assert found.expected(bad.cell) is None


def test_what_was_not_run_says_nothing():
    for cell in (None, record("bk").cell):
        assert Measured({}).of(cell, "memory") == Number()
        assert Measured({}).ratio(cell, "throughput") is Measured({}).expected(cell) is None
