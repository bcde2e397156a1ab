"""What is counted of traces at a cell's own batch, against the products of one linear layer by hand."""

import pickle
from dataclasses import replace

import pytest

from dpbench.cards import Card
from dpbench.records import Cell, Workload
from dpbench.reproducing import counting
from dpbench.reproducing.counting import Counted, count, is_counted
from dpbench.reproduction import Number

LAYER = Workload(model="layer:linear(d=8,p=4)", batch=4, seq_len=16)
BTPD = 4 * 16 * 8 * 4
# Nothing but arithmetic takes time.
CARD = Card("made up", 2_000_000_000, 1e30, 0.0, {"fp32": 1e12}, (), "", reserved=0)


def counted(*names, on=LAYER):
    work = count([Cell(name, on) for name in names], CARD, None)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def test_each_product_is_2_BTpd_and_a_ghost_norm_2_BTT_of_p_and_d():
    found = counted("nonprivate", "opacus", "bk")
    plain, opacus, bk = (found.cells[Cell(name, LAYER)].modules for name in ("nonprivate", "opacus", "bk"))
    # The number that is added to the layer's input costs a few more.
    for flops in (plain["1"], plain["2a"], plain["2b"], opacus["4"]):
        assert flops == pytest.approx(2 * BTPD, rel=0.01)
    assert bk["3"] == 2 * 4 * 16**2 * (4 + 8)
    assert found.traced(Cell("nonprivate", LAYER)).value == pytest.approx(6 * BTPD, rel=0.01)


def test_memory_is_what_is_resident_and_the_peak(monkeypatch):
    found = counted("nonprivate")
    # At least the weight, the bias and the batch are there, in float32.
    assert found.memory(Cell("nonprivate", LAYER)).value > 4 * (8 * 4 + 4 + 4 * 16 * 8) / 1e9


def test_throughput_is_that_of_the_roofline_where_a_step_fits():
    cell = Cell("nonprivate", LAYER)
    found = counted("nonprivate")
    assert found.throughput(cell).value == pytest.approx(4 / (found.traced(cell).value / 1e12), rel=0.01)
    assert Counted(found.cells, replace(CARD, memory=1000)).throughput(cell) == Number(word="oom")


def test_counts_come_from_another_process_as_they_are():
    cells = counted("bk").cells
    assert pickle.loads(pickle.dumps(cells)) == cells


def test_a_refusal_and_whatever_a_model_raises_are_words():
    batch_norm = Workload(model="torchvision:resnet18", batch=2, image_size=32)
    found = counted("bk", on=batch_norm).traced(Cell("bk", batch_norm))
    assert found.value is None
    assert found.word.startswith("refused: ")


def test_a_model_that_cannot_be_built_costs_its_cells_alone(monkeypatch):
    def broken(workload, names):
        raise ValueError("no\nsuch thing")

    monkeypatch.setattr(counting, "predict", broken)
    cell = Cell("bk", LAYER)
    for found in (
        counted("bk").formula(cell),
        counted("bk").traced(cell),
        counted("bk").memory(cell),
        counted("bk").throughput(cell),
    ):
        assert found == Number(word="refused: ValueError: no")


def test_what_was_not_asked_for_says_nothing():
    assert Counted({}, CARD).traced(Cell("bk", LAYER)) == Number()


@pytest.mark.parametrize(
    ("batch", "quantity", "expected"),
    [
        (4, "flops", True),
        (64, "flops", True),
        (7, "memory", True),
        (8, "memory", False),
        ("max", "memory", False),
        (4, "throughput", True),
        (8, "throughput", False),
        ("max", "throughput", False),
    ],
)
def test_lines_begin_at_8_examples(batch, quantity, expected):
    assert is_counted(Cell("bk", Workload(model="m", batch=batch)), quantity) is expected
