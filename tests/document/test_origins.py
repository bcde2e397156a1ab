"""What the methods of a reproduction say of its three columns."""

from dpbench.document.build import build
from dpbench.document.origins import paragraphs
from tests.reporting.test_reproduction import value
from tests.test_reproduction import figure, reproduction

MANY = reproduction(
    figure(value(), printed="figure 1", read="bars", files=("a.jsonl",)),
    figure(value(), id="two", printed="table 2", read="table"),
    figure(value(), id="three", printed="figure 3", read="bars", card="L4"),
    figure(value(), id="sizes", kind="decisions"),
    figure(value(), id="terms", kind="complexity"),
)


def test_published_numbers_are_cited_with_how_they_were_read():
    published, *_ = paragraphs(MANY)
    assert published == ("Published numbers are those of C. How they were read: bars (one, three); table (two).")


def test_predictions_name_their_cards_and_that_nothing_is_fitted():
    _, costs, terms, sizes, _ = paragraphs(MANY)
    assert "roofline of the card (T4, L4) from its published peaks" in costs
    assert "Nothing is fitted" in costs
    assert "FLOPs counted in a trace" in terms
    assert "2T^2 < pd" in sizes


def test_where_it_was_measured_is_said_and_at_which_size():
    *_, here = paragraphs(MANY)
    assert here.startswith("Measured numbers (one) were taken on the CPU of this machine, at the reduced size")
    *_, there = paragraphs(reproduction(*MANY.figures, device="cuda"))
    assert there == "Measured numbers (one) were taken on cuda of this machine, at full size."


def test_of_columns_that_are_not_there_nothing_is_said():
    assert list(paragraphs(reproduction())) == []
    (costs,) = paragraphs(reproduction(figure(value())))
    assert costs.startswith("Predicted costs")


def test_they_stand_first_in_the_methods():
    assert build([], reproduction=MANY).methods[0].startswith("Published numbers are those of C.")
