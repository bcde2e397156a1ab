from dataclasses import replace

import pytest

from dpbench.document.decided import section
from dpbench.document.parts import Kind
from dpbench.document.sources import material
from dpbench.errors import DpbenchError
from tests.document.results_for_tests import column, file, of, timed
from tests.records_for_tests import workload

LAYERS = [["conv", 100, 3, 64], ["middle", 10, 64, 64], ["head", 1, 64, 10]]
"""2T^2 against pd: 20000 and 192; 200 and 4096; 2 and 640."""


def told(layers=LAYERS, on=None, name="nonprivate"):
    made = timed(name, 1.0, on)
    return replace(made, facts={**made.facts, "layers": layers})


def test_the_less_is_picked_and_the_first_ghost_norm_set_off(tmp_path):
    found = section(of(tmp_path, told(), timed("bk", 2.0)))
    chart, grid = found.parts
    assert [e.value for e in column(grid, "2T^2")] == [20000, 200, 2]
    assert [e.value for e in column(grid, "pd")] == [192, 4096, 640]
    picked = column(grid, "less space")
    assert [e.text for e in picked] == ["instantiate", "ghost", "ghost"]
    assert [e.kind for e in picked] == [Kind.PLAIN, Kind.BEST, Kind.PLAIN]
    assert "transformers:gpt2: 2 of 3 layers take the ghost norm; the first is layer 2, middle." in found.prose
    assert chart.draw().axes[0].get_title(loc="left") == "transformers:gpt2"


def test_one_chart_for_each_network_and_size_whatever_the_batch(tmp_path):
    every = [told(on=workload(batch=b, seq_len=t)) for b in (4, 8) for t in (16, 32)]
    *charts, grid = section(of(tmp_path, *every)).parts
    assert [c.caption.partition(": ")[2] for c in charts] == ["transformers:gpt2 T=16", "transformers:gpt2 T=32"]
    assert len(grid.lines) == 6


def test_twelve_are_drawn_and_the_table_has_all(tmp_path):
    *charts, grid = section(of(tmp_path, *(told(on=workload(f"m{i}")) for i in range(13)))).parts
    assert (len(charts), len(grid.lines)) == (12, 39)


def test_a_baseline_that_is_not_asked_for_tells_of_layers_all_the_same(tmp_path):
    results = file(tmp_path, [told(), timed("bk", 2.0)])
    assert section(material([results], "bk")) is not None


def test_where_none_takes_the_ghost_norm_that_is_said(tmp_path):
    assert any("none takes the ghost norm" in p for p in section(of(tmp_path, told(LAYERS[:1]))).prose)


@pytest.mark.parametrize("layers", [[["a", 1, 2]], [1], "abc", [["a", "b", "c", "d"]]])
def test_what_is_no_list_of_layers_is_refused(tmp_path, layers):
    with pytest.raises(DpbenchError, match=r"has facts.layers = .* expected a list of \[name, T, d, p\]; run it anew"):
        section(of(tmp_path, told(layers)))


def test_without_layers_there_is_none(tmp_path):
    assert section(of(tmp_path, timed("bk", 1.0))) is None
