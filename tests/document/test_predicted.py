from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from dpbench.document.predicted import QUANTITIES, section
from dpbench.records import Traced
from dpbench.rows import rows
from tests.document.results_for_tests import column, of, timed, wrong
from tests.records_for_tests import record, workload


def traced(name, seconds, flops, peak, memory, on=None):
    made = timed(name, seconds, on, memory=memory)
    return replace(made, traced=Traced(flops=flops, bytes=1, peak=peak))


def test_residuals_are_measured_over_predicted(tmp_path):
    base = traced("nonprivate", 1.0, 100, 1000, 1000.0)
    found = section(of(tmp_path, base, traced("bk", 3.0, 150, 2000, 2200.0), wrong("vmap")))
    chart, summary, cells = found.parts
    assert [e.text for e in column(summary, "implementation")] == ["nonprivate", "bk"]
    assert [e.text for e in column(summary, "time ratio / FLOPs ratio")] == ["", "2.00"]
    assert [e.text for e in column(summary, "peak memory / traced peak")] == ["1.00", "1.10"]
    assert column(cells, "implementation")[0].text == "bk"
    first, second = chart.draw().axes
    assert [float(x) for line in first.lines[1:] for x in line.get_xdata()] == [pytest.approx(2.0)]
    assert [float(x) for line in second.lines[1:] for x in line.get_xdata()] == [1.0, pytest.approx(1.1)]


def test_a_roofline_is_compared_where_a_record_has_one():
    seconds = QUANTITIES[2]

    @dataclass
    class WithRoofline:
        roofline: object
        flops: int = 1
        peak: int = 1

    (plain,) = rows([record("bk")])
    assert seconds.of(plain) is None
    timed_ = replace(timed("bk", 2.0), traced=WithRoofline(SimpleNamespace(expected=1.0)))
    (row,) = rows([timed_])
    assert seconds.of(row).residual == pytest.approx(2.005)


def test_those_farthest_off_are_listed_and_how_many_are_not(tmp_path):
    records = [traced("bk", 1.0, 1, 100, 100.0 + i, workload(batch=1 + i)) for i in range(203)]
    *_, cells = section(of(tmp_path, *records)).parts
    assert len(cells.lines) == 200
    assert cells.lines[0][-1].text == "3.02"
    assert cells.notes == ("3 of 203 cells, which lie nearer, are left out",)


def test_without_a_trace_there_is_none(tmp_path):
    assert section(of(tmp_path, timed("nonprivate", 1.0), timed("bk", 1.0))) is None
