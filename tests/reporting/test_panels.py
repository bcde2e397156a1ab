from dpbench.reporting.panels import panels_of, places_of, setting_of
from dpbench.rows import rows
from tests.records_for_tests import record, sweep, workload


def test_panels_are_called_by_what_differs():
    titles = [p.title for p in panels_of(rows(sweep(1)), "batch")]
    assert titles[0] == "transformers:gpt2\nT=64"
    assert titles[-1] == "timm:vit_small"
    assert len(titles) == len(set(titles)) == 7


def test_a_single_size_gives_no_panel():
    assert panels_of(rows([record(on=workload(batch=8, seq_len=t)) for t in (1, 2)]), "batch") == []
    assert len(panels_of(rows([record(on=workload(batch=8, seq_len=t)) for t in (1, 2)]), "seq_len")) == 1


def test_the_largest_batch_is_no_point_of_an_axis_but_may_be_what_differs():
    every = rows([record(on=workload(batch=b, seq_len=t)) for b in (4, 8, "max") for t in (1, 2)])
    assert {r.workload.batch for p in panels_of(every, "batch") for r in p.rows} == {4, 8}
    assert "transformers:gpt2\nB=max" in [p.title for p in panels_of(every, "seq_len")]


def test_options_of_a_model_are_shown_where_its_name_is_not_enough():
    every = rows([record(on=workload(m, b)) for m in ("timm:x(a=1)", "timm:y") for b in (1, 2)])
    assert [p.title for p in panels_of(every, "batch")] == ["timm:x", "timm:y"]
    every = rows([record(on=workload(m, b)) for m in ("timm:x(a=1)", "timm:x(a=2)") for b in (1, 2)])
    assert [p.title for p in panels_of(every, "batch")] == ["timm:x(a=1)", "timm:x(a=2)"]


def test_no_two_panels_share_a_place_and_few_places_are_empty():
    for models in range(1, 6):
        for lengths in range(1, 7):
            every = rows(
                [
                    record(on=workload(f"timm:{m}", b, classes=t + 1))
                    for m in range(models)
                    for t in range(lengths)
                    for b in (1, 2)
                ]
            )
            places = places_of(panels_of(every, "batch"))
            assert len(set(places)) == len(places) == models * lengths
            height, width = (1 + max(p[i] for p in places) for i in (0, 1))
            assert width <= 4
            assert height * width - len(places) < 4


def test_the_setting_is_what_all_panels_share():
    every = rows([record(on=workload("timm:x", b, threads=2, layers=b)) for b in (1, 2)])
    (panel, *_) = [
        *panels_of(every, "batch"),
        *panels_of(rows([record(on=workload("timm:x", b, threads=2)) for b in (1, 2)]), "batch"),
    ]
    assert setting_of([panel]) == "gradient step, fp32, cpu, threads 2"
