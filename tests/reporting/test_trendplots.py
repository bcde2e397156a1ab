import math

import pytest
from matplotlib.colors import to_hex

from dpbench.history import history
from dpbench.records import Outcome
from dpbench.reporting import palette, trendplots
from dpbench.results import read
from tests.records_for_tests import PARTIAL, nights, record, rounds_of


def made(n):
    return [
        record("nonprivate", seconds=rounds_of(0.1, n)),
        record("bk", seconds=rounds_of(0.1 * (1.25 if n >= 9 else 1), n + 100)),
        record("vmap", outcome=Outcome.FAILED if n == 3 else Outcome.OK, reason="x", coverage=PARTIAL),
    ]


@pytest.fixture
def found(tmp_path):
    return history([read(p) for p in nights(tmp_path, 14, made)])


def test_each_cell_has_a_panel_in_its_colour_with_its_figures(found):
    panels = trendplots.draw(found).axes
    assert len(panels) == len(found.series) == 3
    for axes, series in zip(panels, found.series, strict=True):
        line = axes.lines[0]
        assert to_hex(line.get_color()).lower() == palette.look(series.cell.implementation).colour.lower()
        expected = [p.figure.value if p.figure else math.nan for p in series.points]
        assert list(line.get_ydata()) == pytest.approx(expected, nan_ok=True)
        assert axes.get_title(loc="left").startswith(f"{series.cell.implementation} on transformers:gpt2 B=8")


def test_a_change_is_a_line_between_its_two_runs_and_words_above(found):
    panels = dict(zip([s.cell.implementation for s in found.series], trendplots.draw(found).axes, strict=True))
    runs, change = panels["bk"].lines
    before, after = runs.get_xdata()[8:10]
    assert before < change.get_xdata()[0] < after
    assert "x slower [" in panels["bk"].get_title(loc="left")
    assert len(panels["nonprivate"].lines) == 1


def test_what_did_not_train_everything_has_hollow_markers(found):
    panels = dict(zip([s.cell.implementation for s in found.series], trendplots.draw(found).axes, strict=True))
    assert "white" in [line.get_markerfacecolor() for line in panels["vmap"].lines]
    assert "white" not in [line.get_markerfacecolor() for line in panels["bk"].lines]


def test_noise_looks_flat(found):
    axes = trendplots.draw(found).axes[[s.cell.implementation for s in found.series].index("nonprivate")]
    low, high = axes.get_ylim()
    assert high - low >= 0.1


def test_the_same_history_is_the_same_file(found, tmp_path):
    paths = [tmp_path / f"{n}.svg" for n in "ab"]
    for path in paths:
        trendplots.write(found, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "time of a step, relative to nonprivate" in paths[0].read_text()
