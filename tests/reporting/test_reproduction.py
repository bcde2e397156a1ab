"""A reproduced figure in a terminal: three columns, words in place of numbers, reasons or that there is none."""

from dataclasses import replace

import pytest

from dpbench.reporting.reproduction import apart, columns, lines, named, notes, number, shares, shown, together
from dpbench.reproduction import Number, Three, Value
from tests.test_reproduction import figure, reproduction

AROUND_3 = Number(3.0, low=2.5, high=3.5)


def value(name="bk", absolute=(), ratio=(), **more):
    given = {"row": "gpt2 B=8", "quantity": "throughput", "unit": "examples/s", "implementation": name}
    return Value(**given | more, absolute=three(*absolute), ratio=three(*ratio))


def three(*columns, **more):
    return Three(*(Number(word=c) if isinstance(c, str) else Number(c) for c in columns), **more)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Number(341.0), "341"),
        (Number(0.0123456), "0.0123"),
        (Number(1.5e6), "1500000"),
        (Number(word="oom"), "oom"),
        (Number(word=">=40"), ">=40"),
        (Number(word="refused: a long reason"), "refused"),
        (Number(), ""),
    ],
)
def test_a_number_or_its_word(given, text):
    assert number(given) == text


def test_a_ratio_has_its_interval():
    assert shown(Number(0.8, low=0.75, high=0.85)) == "0.80 (0.75-0.85)"
    assert shown(Number(word="no ratio: nonprivate is oom")) == "no ratio"


@pytest.mark.parametrize(
    ("published", "predicted", "text"),
    [
        (100.0, 112.3, "+12%"),
        (100.0, 50.0, "-50%"),
        (100.0, 99.9, "+0%"),
        (100.0, None, ""),
        (100.0, "oom", "predicted OOM"),
        ("oom", 100.0, "printed OOM"),
        (100.0, 1000.0, "+900%"),
        (100.0, 1100.0, "11x"),
        ("oom", "oom", "both OOM"),
        (">=40", 50.0, "holds"),
        (">=40", 30.0, "-25%"),
    ],
)
def test_how_far_apart(published, predicted, text):
    assert apart(three(published, predicted)) == text


def test_columns_side_by_side():
    text = lines(
        figure(
            value("nonprivate", (100.0, 110.0, 50.0)),
            value("bk", (80.0, "oom", "wrong: by 0.1"), (0.8, "oom", "wrong: by 0.1")),
            printed="figure 1",
            read="bars",
        )
    )
    assert text[0] == "First [one]"
    assert text[1] == "  printed: figure 1; read: bars; predicted for T4"
    (bk,) = [line.split() for line in text if line.strip().startswith("bk")]
    assert bk == ["bk", "80", "oom", "predicted", "OOM", "wrong", "|", "0.80", "oom", "predicted", "OOM", "wrong"]
    assert text[3].split() == [
        *("throughput,", "examples/s", "published", "predicted", "off", "measured"),
        *("|", "ratio:", "published", "predicted", "off", "measured"),
    ]
    assert text[4] == "  gpt2 B=8", "the workload, above its implementations"
    assert "not printed" in lines(figure(value("bk", (None, 1.0))))[1]


def test_columns_that_say_nothing_are_left_out():
    assert [c.title for c in columns([value("bk", (None, 1.0))])] == ["predicted"]


def test_flops_are_by_formula_and_traced_and_nothing_of_them_is_measured():
    titles = [c.title for c in columns([value("bk", (1.0, 2.0, 3.0), quantity="flops")])]
    assert titles == ["published", "by formula", "off", "traced"]


def test_what_it_is_compared_with_is_said_where_it_is_not_the_baseline():
    assert named(value("bk", relative_to="ghostclip")) == "bk / ghostclip"
    assert named(value("bk")) == named(value("bk", relative_to="")) == "bk"


def test_a_reason_is_shown_and_where_there_is_none_it_says_so():
    far = replace(value("bk", (100.0, 105.0)), ratio=three(1.0, 1.5, reason="Because.", sure="found"))
    bare, near = value("opacus", (100.0, 50.0)), value("vmap", (100.0, 115.0))
    said = notes(figure(far, bare, near))
    assert "over 15 % apart, 1x (ratio of throughput of bk, gpt2 B=8): Because. [found]" in said
    assert "over 15 % apart, 1x (throughput of opacus, gpt2 B=8): no reason is known" in said
    assert not any("vmap" in line for line in said)


def test_what_was_left_out_and_at_which_size_is_said():
    made = figure(value("bk", (None, None, 5.0), at="gpt2 B=2"), left_out=("s: B=64 (slow)",))
    assert notes(made)[:2] == ["* measured at a reduced size: gpt2 B=2", "left out: s: B=64 (slow)"]
    assert lines(made)[3].split()[-1] == "measured*"
    assert notes(figure(value(at="gpt2 B=2"))) == [], "nothing was measured"


def test_shares_are_by_quantity_of_numbers_that_were_printed():
    some = [
        value("bk", (100.0, 105.0), (1.0, 1.2)),
        value("opacus", (100.0, 140.0)),
        value("vmap", (None, 1.0)),
        value("bk", (10.0, 20.0), quantity="memory"),
    ]
    assert shares([figure(*some)]) == [
        "throughput, predicted within 10 % and 25 %: 0 and 1 of 1 ratios, and 1 and 1 of 2 numbers",
        "memory, predicted within 10 % and 25 %: 0 and 0 of 1 numbers",
    ]


def test_words_formulas_and_what_was_read_badly_are_no_numbers_that_a_prediction_comes_near_to():
    words = [value(str(i), given) for i, given in enumerate([("oom", "oom"), ("oom", 5.0), (">=40", 50.0)])]
    blurred = Value(row="r", quantity="throughput", unit="", implementation="bk", absolute=Three(AROUND_3, Number(9.0)))
    terms = figure(value("module 3", (2.0, 2.0), quantity="flops"), kind="complexity")
    assert shares([figure(*words, blurred), terms]) == [
        "out of memory and bounds: 2 of 3 as printed",
        "not counted, as they could not be read to 10 %: 1 numbers and ratios",
        "terms: 1 of 1 printed are what formulas give, within 10 %",
    ]


def test_what_was_printed_four_times_of_one_workload_counts_once():
    rows = [value("bk", (given, 100.0), row=f"gpt2 B=8 task {given}") for given in (100.0, 101.0, 50.0)]
    (said,) = shares([figure(*rows)])
    assert said.endswith("1 and 1 of 1 numbers")


def test_together_says_why_and_how_many_figures_are_there():
    far = replace(value("bk"), absolute=three(100.0, 150.0, reason="r", sure="open"))
    made = reproduction(figure(far, value("opacus", (100.0, 50.0)), seconds=2.0))
    assert together(made)[-2:] == [
        "2 numbers and ratios are more than 15 % apart; why: 1 open, 1 without a reason",
        "1 of 2 figures, 2.00 s",
    ]
    assert together(reproduction())[-1].startswith("0 of 2 figures")
