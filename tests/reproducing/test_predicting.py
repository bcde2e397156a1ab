"""What a line costs on a card, worked by hand; refusals and running out of memory are words."""

from dataclasses import replace

import pytest

from dpbench.cards import Card
from dpbench.complexity.line import Line
from dpbench.complexity.survey import Found, Task
from dpbench.complexity.trace import Operation, Trace
from dpbench.records import Cell, Workload
from dpbench.reproducing import predicting
from dpbench.reproducing.predicting import Predicted, predict
from dpbench.reproduction import Number

# 1 TFLOP/s, 2.5 GB of which 0.3 are not for tensors.
CARD = Card("made up", 2_500_000_000, 1e15, 0.0, {"fp32": 1e12}, (), "", reserved=300_000_000)


def trace(examples):
    """0.2 GB, and 1 GFLOP and 0.1 GB for each example."""
    work = Operation("mm", "1", "weight", "", "float32", 1, examples * 10**9, 8)
    return Trace((work,), {"1": examples * 10**8}, {}, 2 * 10**8)


LINE = Line(trace(8), trace(16), 8, 16)


def cell(batch, name="bk"):
    return Cell(name, Workload(model="synthetic:mlp", batch=batch))


@pytest.mark.parametrize(
    ("batch", "quantity", "expected"),
    [
        (10, "throughput", Number(1000.0)),  # 10 examples at 1 GFLOP each on 1 TFLOP/s take 10 ms
        (20, "throughput", Number(1000.0)),  # 0.2 + 20 * 0.1 = 2.2 GB
        (21, "throughput", Number(word="oom")),
        ("max", "throughput", Number(1000.0)),
        ("max", "max_batch", Number(20.0)),
        (10, "memory", Number(1.2)),
        (30, "memory", Number(3.2)),  # more than there is: what a step needs, as a chart of a paper shows it
        ("max", "memory", Number(2.2)),
        (10, "flops", Number(1e10)),
    ],
)
def test_by_hand(monkeypatch, batch, quantity, expected):
    monkeypatch.setattr(predicting, "worth_running", lambda name, most: most)
    predicted = Predicted(CARD, {cell(1): Found(None, "bk", LINE)})
    found = predicted.of(cell(batch), quantity)
    assert (found.word, found.value) == (expected.word, pytest.approx(expected.value))


def test_where_not_one_example_fits(monkeypatch):
    monkeypatch.setattr(predicting, "worth_running", lambda name, most: most)
    small = Card("small", 150_000_000, 1e15, 0.0, {"fp32": 1e12}, (), "", reserved=0)
    predicted = Predicted(small, {cell(1): Found(None, "bk", LINE)})
    for quantity in ("max_batch", "throughput", "memory"):
        assert predicted.of(cell("max"), quantity) == Number(word="oom")


def test_a_refusal_is_a_word_in_every_quantity():
    predicted = Predicted(CARD, {cell(1): Found(None, "bk", None, reason="not this one")})
    for quantity in ("throughput", "max_batch", "memory", "flops"):
        assert predicted.of(cell(8), quantity) == Number(word="refused: not this one")


def test_each_workload_and_implementation_is_traced_once_whatever_the_batch(monkeypatch):
    asked = []

    def survey(tasks: list[Task], pool):
        asked.extend(tasks)
        return [Found(task, task.implementations[0], LINE) for task in reversed(tasks)]

    monkeypatch.setattr(predicting, "survey", survey)
    monkeypatch.setattr(predicting, "worth_running", lambda name, most: most)
    known = {}
    seen, predicted = ended(predict([cell(4), cell(8), cell("max"), cell(8, "opacus")], CARD, None, known))
    assert [task.implementations for task in asked] == [("bk",), ("opacus",)]
    assert len(seen) == 2
    assert predicted.of(cell(8, "opacus"), "memory").value == pytest.approx(1.0)
    seen, predicted = ended(predict([cell(16), cell(8, "ghostclip")], CARD, None, known))
    assert [found.implementation for found in seen] == ["ghostclip"], "bk is known from before"
    assert predicted.of(cell(16), "memory").value == pytest.approx(1.8)
    other = replace(CARD, memory=10**9)
    assert [found.implementation for found in ended(predict([cell(4)], other, None, known))[0]] == ["bk"]


def ended(work):
    """What a generator gave, and what it returned."""
    given = []
    while True:
        try:
            given.append(next(work))
        except StopIteration as end:
            return given, end.value
