"""Every verdict arises from records that deserve it, and from none else."""

import math
from dataclasses import replace

import pytest

from dpbench.change import Verdict
from dpbench.comparison import compare, differences
from dpbench.coverage import Coverage
from dpbench.records import Cell, Metric, Outcome, Roofline, Traced
from dpbench.results import Header, Results
from dpbench.timed import SECONDS
from tests.records_for_tests import ENVIRONMENT, record, workload
from tests.test_slowdown import times

V = Verdict
TRACED = Traced(flops=1000, bytes=800, peak=600, modules={"1": 600, "2a": 400})


def results(*records, cells=None, environment=ENVIRONMENT, run=""):
    header = Header(
        command="",
        suite="s",
        environment=environment,
        cells=tuple(cells if cells is not None else [r.cell for r in records]),
        started="",
        run=run,
    )
    return Results("x.jsonl", header, tuple(records))


def good(name="bk", factor=1.0, seed=0, **changes):
    return replace(record(name, seconds=times(factor, seed)), **{"traced": TRACED, **changes})


def verdicts(base, new, **how):
    """By quantity, of everything that is not the same."""
    found = {c.quantity: c.verdict for c in compare(base, new, **how) if c.verdict is not V.SAME}
    return found


def one(made):
    return results(made, run="r")


def test_what_is_the_same_is_so_in_every_quantity():
    changes = compare(one(good()), one(good(seed=5)))
    assert {c.quantity for c in changes} == {"outcome", "coverage", "seconds", "memory", "flops", "bytes", "peak"}
    assert {c.verdict for c in changes} == {V.SAME}


def with_memory(factor):
    return good(metrics={**good().metrics, "peak_live": Metric("bytes", ((2e9 * factor,),))})


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (good(), good(factor=1.2, seed=5), {"seconds": V.SLOWER}),
        (good(), good(factor=0.8, seed=5), {"seconds": V.FASTER}),
        (good(), with_memory(1.02), {"memory": V.MORE}),
        (good(), with_memory(0.98), {"memory": V.LESS}),
        (good(), with_memory(1.009), {}),
        (good(), good(traced=replace(TRACED, flops=1001)), {"flops": V.MORE}),
        (good(), good(traced=replace(TRACED, roofline=Roofline("here", 1.0, 2.0, 3.0))), {}),
        (good(), good(traced=replace(TRACED, bytes=799, peak=601)), {"bytes": V.LESS, "peak": V.MORE}),
        (good(), good(coverage=Coverage(100, 88, {"w": 12})), {"coverage": V.LESS_COVERAGE}),
        (good(coverage=Coverage(100, 88, {"w": 12})), good(), {"coverage": V.MORE_COVERAGE}),
        (good(), record(outcome=Outcome.OUT_OF_MEMORY), {"outcome": V.NEW_OOM}),
        (record(outcome=Outcome.OUT_OF_MEMORY), good(), {"outcome": V.OOM_GONE}),
        (record(outcome=Outcome.OUT_OF_MEMORY), record(outcome=Outcome.OUT_OF_MEMORY), {}),
        (good(), record(outcome=Outcome.WRONG), {"outcome": V.NEWLY_WRONG}),
        (good(), record(outcome=Outcome.REFUSED), {"outcome": V.NEWLY_REFUSED}),
        (good(), record(outcome=Outcome.TIMED_OUT), {"outcome": V.NEWLY_FAILED}),
        (record(outcome=Outcome.FAILED), good(), {"outcome": V.BASE_BROKE}),
        (record(outcome=Outcome.REFUSED), good(), {"outcome": V.WORKS_NOW}),
    ],
)
def test_a_verdict_arises_where_it_is_deserved_and_nowhere_else(base, new, expected):
    assert verdicts(one(base), one(new)) == expected


def test_cells_that_one_side_lacks_are_only_in_the_other():
    a, b = good("bk"), good("opacus")
    assert [(c.cell, c.verdict) for c in compare(results(a), results(b))] == [
        (b.cell, V.ONLY_IN_NEW),
        (a.cell, V.ONLY_IN_BASE),
    ]
    begun = results(a, cells=[a.cell, b.cell])
    lost = [c for c in compare(begun, begun) if c.cell == b.cell]
    assert [(c.verdict, c.reason) for c in lost] == [(V.NOT_COMPARABLE, "not finished in either")]


def test_what_is_not_measured_any_more_is_not_the_same():
    bare = replace(good(), metrics={}, traced=None, coverage=None)
    lost = dict.fromkeys(["coverage", "seconds", "memory", "flops", "bytes", "peak"], V.ONLY_IN_BASE)
    assert verdicts(one(good()), one(bare)) == lost
    assert verdicts(one(bare), one(good())) == dict.fromkeys(lost, V.ONLY_IN_NEW)
    assert verdicts(one(bare), one(bare)) == {}


@pytest.mark.parametrize("sides", [lambda a, b: (a, b), lambda a, b: (b, a)])
def test_a_figure_that_is_no_number_is_not_comparable(sides):
    spoiled = with_memory(math.nan)
    spoiled.metrics[SECONDS] = Metric("s", (*times(1.0, 5)[1:], (math.inf,)))
    base, new = sides(good(), spoiled)
    assert verdicts(one(base), one(new)) == {"memory": V.NOT_COMPARABLE, "seconds": V.NOT_COMPARABLE}


ELSEWHERE = {"machine": {"id": "m2", "cpu": "another"}, "versions": {"torch": "2.9.0"}}


def test_of_other_hardware_only_what_is_counted_is_compared():
    base, new = results(good()), results(good(seed=5, traced=replace(TRACED, flops=1001)), environment=ELSEWHERE)
    changes = compare(base, new)
    found = {c.quantity: c.verdict for c in changes if c.verdict is not V.SAME}
    assert found == {"seconds": V.NOT_COMPARABLE, "memory": V.NOT_COMPARABLE, "flops": V.MORE}
    assert {c.reason for c in changes if c.verdict is V.NOT_COMPARABLE} == {"other hardware: cpu made up -> another"}


def test_hardware_that_is_not_known_is_other_hardware():
    unknown = results(good(), environment={})
    assert verdicts(unknown, unknown)["seconds"] is V.NOT_COMPARABLE


def test_other_software_is_listed_and_compared():
    newer = {**ENVIRONMENT, "versions": {"torch": "2.10.0"}}
    base, new = results(good("nonprivate"), good()), results(good("nonprivate"), good(), environment=newer)
    assert differences(base, new) == ["differs: torch 2.9.0 -> 2.10.0"]
    assert verdicts(base, new) == {}


def test_two_runs_are_held_against_nonprivate_in_each():
    base = results(good("nonprivate", 1.0, 1), good("bk", 1.2, 2))
    slower_machine = results(good("nonprivate", 1.5, 3), good("bk", 1.8, 4))
    found = {(c.cell.implementation, c.quantity): c.verdict for c in compare(base, slower_machine)}
    assert found["bk", "seconds"] is V.SAME
    assert found["nonprivate", "seconds"] is V.INCONCLUSIVE
    as_they_are = compare(base, slower_machine, reference=None)
    assert {c.verdict for c in as_they_are if c.quantity == "seconds"} == {V.SLOWER}


def test_a_reference_that_failed_is_none():
    base = results(record("nonprivate", outcome=Outcome.FAILED), good("bk", 1.0, 2))
    new = results(good("nonprivate", 1.0, 3), good("bk", 1.5, 4))
    assert verdicts(base, new)["seconds"] is V.INCONCLUSIVE


def test_two_sides_of_one_run_may_have_two_names():
    base, new = one(good("bk")), one(good("opacus", 1.3, 5))
    (change,) = [c for c in compare(base, new) if c.verdict is not V.SAME]
    assert (change.cell, change.verdict) == (Cell("opacus", workload()), V.SLOWER)
    apart = results(good("bk"), run="r"), results(good("opacus"), run="another")
    assert {c.verdict for c in compare(*apart)} == {V.ONLY_IN_NEW, V.ONLY_IN_BASE}


def test_where_flops_changed_is_said_by_module():
    changed = replace(TRACED, flops=1300, modules={"1": 600, "2a": 400, "4": 300})
    (change,) = [c for c in compare(one(good()), one(good(traced=changed))) if c.quantity == "flops"]
    assert change.reason == "module 4: 0 -> 300"
