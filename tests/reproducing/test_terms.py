"""Terms of a paper on one small layer, beside what counts give."""

import pytest

from dpbench.paper import Figure, Run, Term
from dpbench.records import Cell
from dpbench.reproducing.counting import Count, Counted
from dpbench.reproducing.point import Point
from dpbench.reproducing.terms import values
from dpbench.reproduction import Number
from tests.reproducing.test_counting import BTPD, CARD, LAYER

RUN = Run(suite="s", quantities=("flops",))


def found(terms, cells):
    figure = Figure(id="f", title="F", kind="complexity", printed="p", read="r", run=(RUN,), term=terms)
    made = values(figure, [Point(RUN, cell, None) for cell in cells], Counted(cells, CARD))
    return {value.implementation: value.absolute for value in made}


def cell(name):
    return Cell(name, LAYER)


def test_terms_in_multiples_of_BTpd_as_printed_by_formula_and_traced():
    plain = Count(6.0 * BTPD, 7.0 * BTPD, None, {"1": 3 * BTPD}, {"1": 2 * BTPD})
    made = found((Term(of="module 1", BTpd=2), Term(of="nonprivate", BTpd=6)), {cell("nonprivate"): plain})
    assert [n.value for n in (made["module 1"].published, made["module 1"].predicted, made["module 1"].measured)] == [
        2, 2, 3,
    ]  # fmt: skip
    assert made["nonprivate"].predicted == Number(6.0)
    assert made["nonprivate"].measured == Number(7.0)
    assert made["nonprivate"].off == 0


def test_a_ghost_norm_at_T_16_d_8_p_4():
    ghost = Count(None, None, None, {"3": 24576}, {"3": 24576})
    (made,) = found((Term(of="module 3", BTTpd=2),), {cell("bk"): ghost}).values()
    # 2 BT^2 (p + d) over BTpd is 2 * 16 * 12 / 32.
    assert [made.published, made.predicted, made.measured] == [Number(12.0)] * 3


@pytest.mark.parametrize(("term", "name"), [("module 4", "opacus"), ("opacus", "opacus")])
def test_what_is_refused_is_a_word_and_not_nothing(term, name):
    (made,) = found((Term(of=term, BTpd=2),), {cell(name): Count(None, None, None, reason="why")}).values()
    assert made.predicted == made.measured == Number(word="refused: why")
    assert made.off is None
