"""What a figure needs of its suites: what fits is let through, and everything that fits nothing is told at once."""

import pytest

from dpbench.errors import DpbenchError
from dpbench.paper import Figure, Here, Reason, Row, Run, Term
from dpbench.records import MAX, Cell, Workload
from dpbench.reproducing.fitting import matches, refuse_misfits, shown_by
from dpbench.reproducing.point import Point

RUN = Run(suite="small", quantities=("throughput",))
SIZED = Workload(model="m", batch=8, seq_len=16, image_size=32)


def figure(**given):
    return Figure(**{"id": "f", "title": "F", "printed": "p", "read": "r", "run": (RUN,)} | given)


def points(*names, run=RUN, batches=(8,), here=None):
    return [
        Point(run, Cell(name, Workload(model="m", batch=b)), here and Cell(name, Workload(model="m", batch=here)))
        for b in batches
        for name in names or ("nonprivate", "bk", "opacus")
    ]


def row(**given):
    return Row(**{"model": "m", "B": 8} | given)


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"B": 8, "T": 16, "image": 32}, True),
        ({"B": 9}, False),
        ({"T": 17}, False),
        ({"image": 33}, False),
        ({"model": "n"}, False),
    ],
)
def test_a_size_that_is_not_printed_fits_every_workload(given, fits):
    assert matches(Row(**{"model": "m"} | given), SIZED) == fits


def test_a_models_options_need_not_be_printed():
    workload = Workload(model="m(depth=2)", batch=8)
    assert matches(Row(model="m"), workload)
    assert matches(Row(model="m(depth=2)"), workload)
    assert not matches(Row(model="m(depth=3)"), workload)


def test_the_largest_batch_is_of_every_printed_one():
    assert matches(Row(model="m", B=40), Workload(model="m", batch=MAX))


@pytest.mark.parametrize(("term", "name"), [("bk", "bk"), ("module 1", "nonprivate"), ("module 9", "")])
def test_a_term_is_shown_by_itself_or_by_who_goes_through_its_module(term, name):
    assert shown_by(term) == name


@pytest.mark.parametrize(
    ("given", "cells"),
    [
        ({"row": (row(throughput={"nonprivate": 10, "bk": 8}),)}, {}),
        ({"row": (row(B=None, throughput={"bk": 0.8}, relative_to="nonprivate"),)}, {"batches": (8, 16)}),
        ({"row": (row(B=40, max_batch={"bk": 40}),)}, {"run": Run(suite="s", quantities=("max_batch",)), "here": MAX}),
        (
            {"kind": "complexity", "term": (Term(of="module 2a", BTpd=2),)},
            {"run": Run(suite="s", quantities=["flops"])},
        ),
        ({}, {"run": Run(suite="s", quantities=("memory",), here=Here(axes={"batch": {"8": 4}}))}),
    ],
    ids=["numbers", "relative", "largest", "terms", "axes"],
)
def test_what_fits_is_let_through(given, cells):
    if cells.get("here") == MAX:
        cells = {**cells, "batches": (MAX,)}
    refuse_misfits(figure(**given), points(**cells))


@pytest.mark.parametrize(
    ("given", "cells", "said"),
    [
        (
            {"row": (row(B=9),)},
            {},
            r"the row of m \(T=None, image=None, B=9\) fits no cell of small; expected a workload",
        ),
        ({"row": (row(throughput={"kb": 8}),)}, {}, "throughput of kb, expected of nonprivate, bk, opacus: those that"),
        ({"row": (row(memory={"bk": 8}),)}, {}, "memory of bk, expected of none"),
        ({"row": (row(throughput={"bk": 8}, relative_to="vmap"),)}, {}, "throughput of vmap, expected of nonprivate"),
        (
            {"kind": "complexity", "term": (Term(of="vmap", BTpd=6),)},
            {"run": Run(suite="s", quantities=("flops",))},
            "the term of vmap needs vmap, which is not run on m B=8",
        ),
        (
            {"kind": "complexity", "term": (Term(of="module 9", BTpd=6),)},
            {"run": Run(suite="s", quantities=("flops",))},
            "there is no module 9; expected one of 1, 2a",
        ),
        ({"kind": "complexity"}, {}, r'a figure of complexity is of FLOPs, expected quantities = \["flops"\] of small'),
        ({"kind": "decisions"}, {}, r'a figure of decisions is of FLOPs, expected quantities = \["flops"\] of small'),
        (
            {},
            {"run": Run(suite="s", quantities=("max_batch",))},
            "max_batch of s at a batch of its own, expected batch",
        ),
        (
            {},
            {"run": Run(suite="s", quantities=("max_batch",)), "batches": (MAX,), "here": 4},
            'expected batch = "max" in the suite and here',
        ),
        (
            {},
            {"run": Run(suite="s", quantities=("flops",)), "batches": (MAX,)},
            'flops of s at batch = "max", expected a number there',
        ),
        (
            {},
            {"run": Run(suite="s", quantities=("memory",), here=Here(axes={"batch": {"61": 4}})), "batches": (8, 16)},
            "here.axes.batch is given for 61, expected for one of s: 8, 16",
        ),
    ],
)
def test_what_fits_nothing_is_refused(given, cells, said):
    with pytest.raises(DpbenchError, match=said):
        refuse_misfits(figure(**given), points(**cells))


def test_every_mistake_is_told_and_each_once():
    wrong = figure(row=(row(B=9), row(throughput={"kb": 1}), row(throughput={"kb": 2})))
    with pytest.raises(DpbenchError) as caught:
        refuse_misfits(wrong, points())
    head, *mistakes = str(caught.value).splitlines()
    assert head == "figure f and its suites do not fit:"
    assert len(mistakes) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"implementation": "kb*"},
            r"the reason 'why' is for implementation 'kb\*', expected of bk, nonprivate, opacus",
        ),
        ({"quantity": "memory"}, "is for quantity 'memory', expected of throughput"),
        ({"model": "n"}, "is for model='n', .* which fits no workload of its suites"),
        ({"T": (64,)}, r"T=\[64\], .* which fits no workload"),
        ({"image": (224,)}, r"image=\[224\], which fits no workload"),
    ],
)
def test_a_reason_for_nothing_is_refused(given, said):
    with pytest.raises(DpbenchError, match=said):
        refuse_misfits(figure(reason=(Reason(sure="open", says="why", **given),)), points())
    refuse_misfits(figure(reason=(Reason(sure="open", says="why", model="m", implementation="bk"),)), points())
