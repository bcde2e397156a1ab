import errno
import os

import pytest

from dpbench.records import Outcome
from dpbench.reporting import palette, plots
from dpbench.reporting.panels import panels_of
from dpbench.rows import rows
from tests.records_for_tests import PARTIAL, record, sweep, workload

THROUGHPUT, MEMORY = plots.QUANTITIES


def drawn(records, size="batch", quantity=THROUGHPUT):
    return plots.draw(panels_of(rows(records), size), size, quantity)


def lines_of(axes):
    return {line.get_color(): line for line in axes.lines}


def crosses_of(axes):
    return [(t.xy[0], t.get_color()) for t in axes.texts]


def test_files_lie_beside_the_results_and_say_what_they_are(tmp_path):
    records = [record(on=workload(batch=b, seq_len=t)) for b in (4, 8) for t in (16, 32)]
    written = plots.draw_all(rows(records), tmp_path / "run-1.jsonl")
    names = [
        f"run-1-{q}-vs-{s}.{e}" for s in ("batch", "seq-len") for q in ("throughput", "memory") for e in ("png", "svg")
    ]
    assert [p.name for p in written] == names
    assert all(p.stat().st_size > 1000 for p in written)
    assert "throughput, examples/s" in written[1].read_text()


def test_without_room_no_half_chart_is_left(tmp_path, monkeypatch):
    def full(figure, path, **options):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(OSError, match="No space left"):
        plots.draw_all(rows([record(on=workload(batch=b)) for b in (4, 8)]), tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())


def test_the_same_records_give_the_same_file(tmp_path):
    every = rows([record(on=workload(batch=b)) for b in (4, 8)])
    first, second = (plots.draw_all(every, tmp_path / f"{n}.jsonl")[1].read_bytes() for n in "ab")
    assert first == second


def test_a_sweep_without_sizes_has_no_charts(tmp_path):
    assert plots.draw_all(rows([record()]), tmp_path / "x.jsonl") == []
    assert plots.draw_all([], tmp_path / "x.jsonl") == []


def test_each_implementation_has_its_colour_and_its_figures():
    records = [record(n, workload(batch=b), seconds=[[0.1 * b]]) for n in ("bk", "opacus") for b in (4, 8, 12)]
    (axes,) = drawn(records).axes
    for name in ("bk", "opacus"):
        line = lines_of(axes)[palette.look(name).colour]
        assert list(line.get_xdata()) == [4, 8, 12]
        assert list(line.get_ydata()) == pytest.approx([10, 10, 10])


def test_ticks_stand_at_the_sizes_that_were_run():
    (axes,) = drawn([record(on=workload(batch=b)) for b in (4, 12, 31)]).axes
    assert list(axes.get_xticks()) == [4, 12, 31]
    assert axes.get_ylim()[0] == 0


@pytest.mark.parametrize("quantity", plots.QUANTITIES)
def test_running_out_of_memory_is_marked_where_it_happened(quantity):
    records = [
        record(n, workload(batch=b), Outcome.OUT_OF_MEMORY if b == 16 else Outcome.OK)
        for n in ("bk", "opacus")
        for b in (4, 8, 16)
    ]
    figure = drawn(records, quantity=quantity)
    assert crosses_of(figure.axes[0]) == [(16, palette.look(n).colour) for n in ("opacus", "bk")]
    assert "out of memory" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_other_outcomes_leave_a_gap_and_no_cross():
    records = [record("bk", workload(batch=b), Outcome.WRONG if b == 8 else Outcome.OK) for b in (4, 8, 16)]
    figure = drawn(records)
    assert crosses_of(figure.axes[0]) == []
    assert list(figure.axes[0].lines[0].get_ydata())[1] != list(figure.axes[0].lines[0].get_ydata())[1]


def test_the_legend_comes_once_and_names_everyone():
    figure = drawn(sweep(1))
    assert len(figure.axes) == 7
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == [
        *("nonprivate", "vmap", "opacus", "ghostclip", "bk", "bk_mixopt"),
        "out of memory",
    ]
    assert not any(axes.get_legend() for axes in figure.axes)


def test_a_wide_range_is_logarithmic_and_shows_every_point():
    records = [record(on=workload(batch=b), memory=m) for b, m in ((1, 1e6), (2, 1e8))]
    (axes,) = drawn(records, quantity=MEMORY).axes
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log"
    assert low < 1e-3
    assert high > 0.1


def test_a_figure_without_all_parameters_has_a_hollow_marker_that_the_legend_explains():
    records = [record("bk", workload(batch=b), **({"coverage": PARTIAL} if b == 8 else {})) for b in (4, 8, 16)]
    figure = drawn(records)
    line, hollow = figure.axes[0].lines
    assert (len(line.get_xdata()), list(hollow.get_xdata())) == (3, [8])
    assert (line.get_markerfacecolor(), hollow.get_markerfacecolor()) == (palette.look("bk").colour, "white")
    assert figure.legends[0].get_texts()[-1].get_text() == "not all parameters trained"
