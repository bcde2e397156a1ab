import pytest

from dpbench.coverage import Coverage
from dpbench.job import Job
from dpbench.records import Parity, Roofline, Traced, Workload
from dpbench.told import FOUND, Garbled, figures, refuse_garbled

NAN, INF = float("nan"), float("inf")
M = Workload(model="m", batch=1)
PARITY = {"passed": True, "error": 1e-15, "tolerance": 1e-8, "precision": "float64", "worst": "norms"}
COVERAGE = {"asked": 9, "trained": 7, "frozen": {"w": 2}, "norms": {"ghost": 7}}
TIMES = {"seconds": [0.5, 0.25], "at": [0.0, 0.5], "started": 1e9, "warm_up": 4, "settled": True}
TRACED = {"flops": 9, "bytes": 8, "peak": 7, "modules": {"1": 5}, "on": "trace"}
ROOFLINE = {"card": "here", "low": 0.25, "expected": 0.5, "high": 1.0}
TOLD = {
    "sources": {"source": "abc"},
    "fit": {"batch": 3, "need": 7, "capacity": 9},
    "parity": {"parity": PARITY, "coverage": COVERAGE},
    "trace": {"traced": TRACED},
    "memory": {"memory": {"peak_live": 5.0}},
    "round": TIMES,
    "turns": TIMES,
    "verify": {"verdict": {"check": "tied"}},
}


def job(kind):
    return Job(kind=kind, workload=M, implementations=("a", "b"))


def result(values):
    return {"event": "result", "implementation": "a", **values}


@pytest.mark.parametrize("kind", FOUND)
def test_what_a_worker_tells_is_taken(kind):
    message = result(TOLD[kind])
    refuse_garbled(message, job(kind), "a")
    assert set(figures(message, job(kind))) == set(TOLD[kind])


def test_figures_come_in_their_types():
    assert figures(result(TOLD["parity"]), job("parity")) == {
        "parity": Parity(True, 1e-15, 1e-8, "float64", "norms"),
        "coverage": Coverage(9, 7, {"w": 2}, {"ghost": 7}),
    }
    assert figures(result(TOLD["trace"]), job("trace")) == {
        "traced": Traced(flops=9, bytes=8, peak=7, modules={"1": 5})
    }
    timed = figures(result({"traced": {**TRACED, "roofline": ROOFLINE}}), job("trace"))["traced"]
    assert timed.roofline == Roofline("here", 0.25, 0.5, 1.0)
    assert figures(result(TIMES), job("round"))["seconds"] == (0.5, 0.25)


def test_a_gradient_that_is_not_finite_is_a_figure_and_did_not_pass():
    found = figures(
        result({"parity": {**PARITY, "passed": False, "error": float("nan")}, "coverage": COVERAGE}), job("parity")
    )
    assert not found["parity"].passed


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("fit", {"batch": -1}),
        ("fit", {"need": 10**30}),
        ("fit", {"batch": True}),
        ("fit", {"more": 1}),
        ("parity", {"parity": {**PARITY, "error": 1.0}}),
        ("parity", {"parity": {**PARITY, "error": NAN}}),
        ("parity", {"parity": {**PARITY, "error": -1.0}}),
        ("parity", {"parity": {**PARITY, "tolerance": INF}}),
        ("parity", {"coverage": {**COVERAGE, "trained": 8}}),
        ("parity", {"coverage": {**COVERAGE, "norms": {"ghost": -1}}}),
        ("trace", {"traced": {**TRACED, "flops": -1}}),
        ("trace", {"traced": {**TRACED, "modules": {"1": -1}}}),
        ("trace", {"traced": {**TRACED, "roofline": {**ROOFLINE, "low": -1.0}}}),
        ("trace", {"traced": {**TRACED, "roofline": {**ROOFLINE, "expected": NAN}}}),
        ("trace", {"traced": {**TRACED, "roofline": {**ROOFLINE, "high": INF}}}),
        ("trace", {"traced": {**TRACED, "roofline": {"card": "here"}}}),
        ("memory", {"memory": {}}),
        ("memory", {"memory": {"peak_live": NAN}}),
        ("memory", {"memory": {"peak_live": INF}}),
        ("memory", {"memory": {"peak_live": -1}}),
        ("memory", {"memory": [1]}),
        ("round", {"seconds": [0.5]}),
        ("round", {"seconds": [], "at": []}),
        ("round", {"seconds": [0.5, 0.0]}),
        ("round", {"seconds": [0.5, -0.5]}),
        ("round", {"seconds": [0.5, NAN]}),
        ("round", {"seconds": [0.5, INF]}),
        ("round", {"seconds": [0.5, "fast"]}),
        ("round", {"at": [0.0, NAN]}),
        ("round", {"started": INF}),
        ("round", {"warm_up": -1}),
        ("round", {"settled": 1}),
        ("sources", {"source": 3}),
        ("verify", {"verdict": "right"}),
        ("check", {}),
    ],
)
def test_figures_that_cannot_be_are_none(kind, change):
    with pytest.raises(Garbled):
        figures(result({**TOLD.get(kind, {}), **change}), job(kind))


@pytest.mark.parametrize(
    ("message", "kind", "who"),
    [
        ({}, "memory", "a"),
        ({"event": 3}, "memory", "a"),
        ({"event": "victory"}, "memory", "a"),
        ({"event": "started"}, "memory", None),
        ({"event": "started", "implementation": "c"}, "memory", None),
        ({"event": "result", "implementation": "b"}, "memory", "a"),
        ({"event": "result", "implementation": "a"}, "memory", None),
        ({"event": "ended", "implementation": "b", "outcome": "failed", "reason": ""}, "memory", "a"),
        ({"event": "ended", "implementation": "a", "outcome": "splendid", "reason": ""}, "memory", "a"),
        ({"event": "ended", "implementation": "a", "outcome": "failed", "reason": 3}, "memory", "a"),
        ({"event": "facts", "facts": {"trainable": "all"}}, "memory", None),
        ({"event": "facts", "facts": {}}, "memory", "a"),
        ({"event": "facts", "facts": {"layers": "all"}}, "trace", None),
        ({"event": "facts", "facts": {"layers": ["w"]}}, "trace", None),
        ({"event": "facts", "facts": {"layers": [["w", 1, 2]]}}, "trace", None),
        ({"event": "facts", "facts": {"layers": [[1, 1, 2, 3]]}}, "trace", None),
        ({"event": "facts", "facts": {"layers": [["w", 1, 2, -3]]}}, "trace", None),
        ({"event": "mistake", "workload": "m", "reason": "r"}, "memory", None),
        ({"event": "turn"}, "round", "a"),
        ({"event": "done", "imported": 3}, "memory", "a"),
        ({"event": "done", "imported": [3]}, "memory", "a"),
    ],
)
def test_what_no_worker_says_is_refused_with_what_it_was(message, kind, who):
    with pytest.raises(Garbled) as caught:
        refuse_garbled(message, job(kind), who)
    assert str(caught.value)[:20] in str(message)


@pytest.mark.parametrize(
    ("message", "kind", "who"),
    [
        ({"event": "started", "implementation": "b"}, "memory", "a"),
        ({"event": "ended", "implementation": None, "outcome": "failed", "reason": ""}, "memory", "a"),
        ({"event": "facts", "facts": {"trainable": 3, "tokens": None}}, "memory", None),
        ({"event": "facts", "facts": {"layers": [["w", 1, 2, 3]]}}, "trace", None),
        ({"event": "mistake", "workload": "m", "reason": "r"}, "check", None),
        ({"event": "ready"}, "turns", "a"),
        ({"event": "done"}, "memory", "a"),
    ],
)
def test_what_a_worker_says_is_not_refused(message, kind, who):
    refuse_garbled(message, job(kind), who)
    with pytest.raises(Garbled):
        refuse_garbled({**message, "event": "another"}, job(kind), who)
