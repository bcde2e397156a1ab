import pytest

from dpbench.document.tradeoff import Point, front, section
from dpbench.rows import Row
from tests.document.results_for_tests import LARGEST, of, timed, wrong
from tests.records_for_tests import PARTIAL, workload

BASE = timed("nonprivate", 1.0, memory=1e9)


def points(*given):
    return [Point(Row(timed(name, 1.0, **more)), memory, time) for name, memory, time, more in given]


def names(found):
    return [p.row.implementation for p in found]


def test_the_front_is_what_no_other_private_one_beats_in_both():
    every = points(("bk", 1.0, 3.0, {}), ("vmap", 2.0, 2.0, {}), ("opacus", 3.0, 2.5, {}), ("ghostclip", 3.0, 1.0, {}))
    assert names(front(every)) == ["bk", "vmap", "ghostclip"]


def test_of_equals_in_memory_the_faster_is_on_it():
    assert names(front(points(("bk", 1.0, 3.0, {}), ("vmap", 1.0, 2.0, {}), ("opacus", 2.0, 2.0, {})))) == ["vmap"]


def test_neither_the_baseline_nor_partial_work_is_on_it():
    less = {"coverage": PARTIAL}
    assert names(front(points(("nonprivate", 0.1, 0.1, {}), ("bk", 0.5, 0.5, less), ("vmap", 2.0, 2.0, {})))) == [
        "vmap"
    ]


def test_ratios_where_there_is_a_baseline_and_figures_where_there_is_none(tmp_path):
    alone = workload(batch=16)
    records = [BASE, timed("bk", 2.0, memory=3e9), timed("opacus", 4.0, memory=5e9), wrong("vmap")]
    found = section(of(tmp_path, *records, timed("bk", 2.0, alone), timed("opacus", 4.0, alone)))
    relative, absolute = found.parts
    (axes,) = relative.draw().axes
    drawn = {(float(line.get_xdata()[0]), round(float(line.get_ydata()[0]), 6)) for line in axes.lines[1:]}
    assert drawn == {(1.0, 1.0), (3.0, 2.0), (5.0, 4.0)}
    (axes,) = absolute.draw().axes
    drawn = {round(float(line.get_ydata()[0])) for line in axes.lines[1:]}
    assert drawn == {2005, 4010}
    assert "transformers:gpt2 B=8: bk" in relative.alt


def test_one_private_implementation_or_the_largest_batch_has_no_panel(tmp_path):
    assert section(of(tmp_path, BASE, timed("bk", 2.0))) is None
    assert section(of(tmp_path / "x", timed("bk", 1.0, LARGEST), timed("vmap", 2.0, LARGEST))) is None


@pytest.mark.parametrize("workloads", [12, 14])
def test_twelve_panels_and_what_is_left_out_is_said(tmp_path, workloads):
    records = [timed(n, s, workload(batch=1 + i)) for i in range(workloads) for n, s in (("bk", 1.0), ("vmap", 2.0))]
    found = section(of(tmp_path, *records))
    assert len(found.parts[0].draw().axes) == 12
    assert any("the first 12 of 14 workloads" in p for p in found.prose) == (workloads == 14)
