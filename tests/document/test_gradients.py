from dpbench.document.gradients import section
from dpbench.document.parts import Kind
from dpbench.document.sources import material
from dpbench.records import Outcome
from tests.document.results_for_tests import column, file, of, timed, wrong
from tests.records_for_tests import PARTIAL, record, workload


def test_who_was_right_and_who_was_not(tmp_path):
    small, large = workload(batch=4), workload(batch=8)
    found = section(
        of(tmp_path, record("bk", small, error=1e-12), record("bk", large, error=1e-15), wrong("vmap", small))
    )
    right, _ = found.parts
    assert [e.text for e in column(right, "checked")] == ["1", "2"]
    assert [e.text for e in column(right, "right")] == ["0", "2"]
    assert [(e.text, e.kind) for e in column(right, "wrong")] == [("1", Kind.BAD), ("0", Kind.PLAIN)]
    worst = column(right, "largest error")[1]
    assert (worst.text, worst.record, worst.note) == ("1.0e-12", 0, "transformers:gpt2 B=4")
    assert column(right, "allowed")[1].text == "1e-08 (float64)"


def test_coverage_by_method_from_the_smallest_to_the_largest(tmp_path):
    found = section(of(tmp_path, record("bk"), record("bk", workload(batch=4), coverage=PARTIAL)))
    right, without = found.parts
    assert [e.text for e in column(right, "coverage")] == ["88 % to 100 %"]
    assert [e.text for e in column(right, "ghost")] == ["85 % to 99 %"]
    assert [e.text for e in column(right, "generic")] == ["0 % to 3.0 %"]
    assert [e.text for e in column(without, "outcome")] == ["part was trained"]


def test_what_has_no_figure_wrong_ones_first_alike_ones_in_one_line(tmp_path):
    oom = [record("opacus", workload(batch=b), Outcome.OUT_OF_MEMORY, "limit") for b in (1, 2, 4, 8, 16)]
    refused = record("vmap", outcome=Outcome.REFUSED, reason="it mixes")
    _, without = section(of(tmp_path, *oom, refused, wrong("bk"))).parts
    assert [e.text for e in column(without, "outcome")] == ["wrong", "refused", "OOM"]
    assert [e.text for e in column(without, "cells")] == ["1", "1", "5"]
    assert column(without, "workloads")[2].text.endswith("B=4 and 2 more")
    assert [e.text for e in column(without, "reason")] == ["wte.weight differs by 0.13", "it mixes", "limit"]


def test_where_all_is_well_there_is_no_second_table(tmp_path):
    assert len(section(of(tmp_path, timed("bk", 1.0))).parts) == 1
    assert section(material([file(tmp_path / "none", [])])) is None
