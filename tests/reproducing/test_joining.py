"""The three columns of a figure by hand: ratios, bounds, running out of memory, and reasons."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dpbench.paper import Figure, Reason, Row, Run
from dpbench.records import Cell, Workload
from dpbench.reproducing.counting import Count, Counted
from dpbench.reproducing.joining import Found, reasoned, values
from dpbench.reproducing.measuring import Measured
from dpbench.reproducing.point import Point
from dpbench.reproduction import Number, Three, Value
from dpbench.rows import rows
from tests.document.results_for_tests import steady, wrong
from tests.records_for_tests import record
from tests.reproducing.test_counting import CARD

W = Workload(model="m", batch=8, seq_len=4)
NAMES = ("nonprivate", "bk", "opacus")
OOM = Number(word="oom")


def joined(printed=None, predicted=None, records=(), quantity="throughput", counted=None, **row):
    """Values of one run on one workload, by implementation."""
    run = Run(suite="s", quantities=(quantity,))
    rows_ = (Row(model="m", **{quantity: printed}, **row),) if printed else ()
    figure = Figure(id="f", title="F", printed="p", read="r", run=(run,), row=rows_)
    points = [Point(run, Cell(name, W), Cell(name, W)) for name in NAMES]
    given = SimpleNamespace(of=lambda cell, _: (predicted or {}).get(cell.implementation, Number()))
    measured = Measured({r.record.cell: r for r in rows(records)})
    found = values(figure, points, Found(given, Counted(counted or {}, CARD), [measured]))
    return {value.implementation: value for value in found}


def numbers(**given):
    return {name: Number(word=v) if isinstance(v, str) else Number(v) for name, v in given.items()}


def test_ratios_are_to_the_baseline_of_the_same_column():
    found = joined({"nonprivate": 100, "bk": 80}, numbers(nonprivate=200.0, bk=150.0))
    bk = found["bk"]
    assert bk.absolute == Three(Number(80.0), Number(150.0))
    assert bk.ratio == Three(Number(0.8), Number(0.75))
    assert found["nonprivate"].ratio == Three()
    assert found["opacus"].absolute == Three()
    assert (bk.row, bk.sizes, bk.unit) == ("m T=4 B=8", {"T": 4, "B": 8}, "examples/s")


def test_bounds_have_ratios_that_are_bounds():
    bk = joined({"nonprivate": 5, "bk": ">=40"}, numbers(nonprivate=5.0, bk=60.0), quantity="throughput")["bk"]
    assert bk.ratio.published == Number(word=">=8")
    assert bk.ratio.off == bk.absolute.off == 0
    far = joined({"nonprivate": 5, "bk": ">=40"}, numbers(nonprivate=5.0, bk=30.0))["bk"]
    assert far.ratio.off == far.absolute.off == -0.25


def test_running_out_of_memory_is_a_word_in_ratios():
    found = joined({"nonprivate": 100, "bk": "oom", "opacus": "oom"}, numbers(nonprivate=90.0, bk="oom", opacus=9.0))
    assert found["bk"].ratio == Three(OOM, OOM)
    assert (found["bk"].ratio.off, found["opacus"].ratio.off) == (0, float("inf"))


@pytest.mark.parametrize("base", ["oom", "refused: why", ">=40"])
def test_without_a_baseline_there_is_no_ratio(base):
    predicted = {"nonprivate": Number(word=base), "bk": Number(5.0)}
    assert joined(predicted=predicted)["bk"].ratio.predicted == Number(word=f"no ratio: nonprivate is {base}")
    assert joined(predicted=numbers(bk=5.0))["bk"].ratio.predicted == Number()


def test_what_was_printed_as_a_ratio_is_compared_as_one():
    found = joined({"bk": 1.36}, numbers(nonprivate=200.0, bk=150.0, opacus=100.0), relative_to="opacus")
    assert list(found) == ["bk"]
    assert (found["bk"].ratio, found["bk"].relative_to) == (Three(Number(1.36), Number(1.5)), "opacus")
    assert found["bk"].absolute == Three(Number(), Number(150.0))


def test_measured_ratios_are_of_paired_rounds_and_words_stay_words():
    def taken(name, seconds):
        return replace(record(name, W, seconds=steady(seconds)))

    found = joined(records=[taken("nonprivate", 0.25), taken("bk", 0.5), wrong("opacus", W)])
    assert found["bk"].ratio.measured.value == pytest.approx(0.5)
    assert found["bk"].ratio.measured.low is not None
    word = Number(word="wrong: wte.weight differs by 0.13")
    assert found["opacus"].absolute.measured == found["opacus"].ratio.measured == word
    assert found["opacus"].expected_here == Number()


def test_of_who_is_wrong_no_speed_is_predicted():
    predicted = numbers(nonprivate=200.0, bk=150.0, opacus=100.0)
    found = joined(predicted=predicted, records=[record("nonprivate", W), record("bk", W), wrong("opacus", W)])
    assert found["bk"].ratio.predicted == Number(0.75)
    for three in (found["opacus"].absolute, found["opacus"].ratio):
        assert three.predicted == Number(word="wrong: its gradient is, where it was measured")


def test_a_wrong_baseline_gives_no_ratio():
    found = joined(records=[wrong("nonprivate", W), record("bk", W)])
    assert found["bk"].ratio.measured.word.startswith("no ratio: nonprivate is wrong")
    assert found["bk"].absolute.measured.value == 16


def test_flops_are_by_formula_and_traced():
    counted = {Cell(n, W): Count(float(f), float(t), None) for n, f, t in (("nonprivate", 6, 6), ("bk", 7, 9))}
    counted[Cell("opacus", W)] = Count(None, None, None, reason="why")
    found = joined(quantity="flops", counted=counted)
    assert found["bk"].absolute == Three(Number(), Number(7.0), Number(9.0))
    assert found["bk"].ratio.measured == Number(1.5)
    refused = Number(word="refused: why")
    assert found["opacus"].absolute == found["opacus"].ratio == Three(Number(), refused, refused)


def test_each_run_has_what_was_measured_for_it():
    one, two = Run(suite="s", quantities=("throughput",)), Run(suite="t", quantities=("memory",))
    cell, bare = Cell("bk", W), record("bk", W)
    timed = {row.record.cell: row for row in rows([bare])}
    weighed = {row.record.cell: row for row in rows([replace(bare, metrics={})])}
    figure = Figure(id="f", title="F", run=(one, two))
    given = SimpleNamespace(of=lambda cell, _: Number())
    found = Found(given, Counted({}, CARD), [Measured(timed), Measured(weighed)])
    made = values(figure, [Point(one, cell, cell), Point(two, cell, cell)], found)
    assert [v.absolute.measured for v in made if v.quantity == "throughput"] == [Number(16.0)]
    assert [v.absolute.measured for v in made if v.quantity == "memory"] == [Number()]


def value(off, ratio=None, **more):
    given = {"row": "gpt2 B=8", "model": "gpt2(n=1)", "quantity": "throughput", "unit": "u", "implementation": "bk"}
    both = {"absolute": Three(Number(100.0), Number(100 * (1 + off)))}
    if ratio is not None:
        both["ratio"] = Three(Number(1.0), Number(1 + ratio))
    return Value(**given | more, **both)


@pytest.mark.parametrize(
    ("reason", "fits"),
    [
        ({}, True),
        ({"implementation": "b*"}, True),
        ({"implementation": "opacus"}, False),
        ({"model": "gpt2"}, True),
        ({"model": "gp*"}, True),
        ({"model": "roberta"}, False),
        ({"T": (64, 128)}, True),
        ({"T": (64,)}, False),
        ({"image": (224,)}, False),
        ({"quantity": "memory"}, False),
        ({"of": "absolute"}, True),
        ({"of": "ratio"}, False),
    ],
)
def test_a_reason_is_attached_where_it_fits(reason, fits):
    figure = Figure(id="f", title="F", reason=(Reason(sure="found", says="because", **reason),))
    assert reasoned(value(0.2, sizes={"T": 128}), figure).absolute.reason == ("because" if fits else "")
    assert reasoned(value(0.1), figure).absolute.reason == "", "not over 15 %"


def test_a_number_and_its_ratio_have_reasons_of_their_own_that_say_how_sure_each_is():
    figure = Figure(
        id="f", title="F", reason=(Reason(sure="found", says="One."), Reason(sure="open", says="Two.", of="ratio"))
    )
    number = reasoned(value(0.2), figure)
    assert (number.absolute.reason, number.absolute.sure, number.ratio.reason) == ("One.", "found", "")
    both = reasoned(value(0.2, 0.3), figure)
    assert (both.absolute.reason, both.absolute.sure) == ("One.", "found")
    assert (both.ratio.reason, both.ratio.sure) == ("One. Two.", "found, open")


def test_how_far_off_a_number_may_be_as_it_was_read_goes_into_its_ratio():
    found = joined({"nonprivate": 5.0, "bk": 4.0}, numbers(bk=4.0), read_to={"throughput": 0.5})["bk"]
    assert found.absolute.published == Number(4.0, low=3.5, high=4.5)
    # 0.8, and an eighth and a tenth of it.
    assert found.ratio.published == Number(0.8, low=pytest.approx(0.62), high=pytest.approx(0.98))
