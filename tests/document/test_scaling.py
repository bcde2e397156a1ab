import pytest

from dpbench.document.scaling import section
from tests.document.results_for_tests import of, timed
from tests.records_for_tests import record, sweep, workload


def test_a_chart_for_each_size_that_was_varied_and_each_quantity(tmp_path):
    found = section(of(tmp_path, *sweep()))
    assert [c.id for c in found.parts] == [
        f"{q}-vs-{s}" for s in ("batch", "seq-len") for q in ("throughput", "memory")
    ]
    assert all(c.draw().axes for c in found.parts)
    assert "over B = 4, 8, 16, 32" in found.parts[0].alt
    assert found.parts[0].sources == ("A",)


def test_where_nothing_was_varied_there_is_none(tmp_path):
    assert section(of(tmp_path, record("bk"))) is None
    assert section(of(tmp_path / "x", timed("bk", 1.0, workload(batch="max")), timed("bk", 1.0))) is None


@pytest.mark.parametrize(("models", "charts", "left"), [(12, 1, 0), (13, 2, 0), (48, 4, 0), (50, 4, 2)])
def test_twelve_panels_a_chart_four_charts_and_what_is_left_out_is_said(tmp_path, models, charts, left):
    records = [record("bk", workload(f"m{i}", b)) for i in range(models) for b in (1, 2)]
    found = section(of(tmp_path, *records))
    of_throughput = [c for c in found.parts if c.id.startswith("throughput")]
    assert len(of_throughput) == charts
    assert [len(c.records) for c in of_throughput] == [24] * (charts - 1) + [2 * (models - left) - 24 * (charts - 1)]
    said = [p for p in found.prose if f"{left} of {models} panels are left out; -k" in p]
    assert len(said) == (2 if left else 0)


def test_several_sizes_share_what_a_page_can_hold(tmp_path):
    records = [
        record("bk", workload(f"m{i}", b, seq_len=t, image_size=px))
        for i in range(13)
        for b in (1, 2)
        for t in (8, 16)
        for px in (32, 64)
    ]
    found = section(of(tmp_path, *records))
    assert len(found.parts) == 6
    assert sum("40 of 52 panels are left out" in p for p in found.prose) == 6
