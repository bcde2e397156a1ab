"""A reproduced figure in a terminal: three columns, words in place of numbers, reasons or that there is none."""

import pytest

from dpbench.reporting.threefold import apart, lines, named, notes, number, shares, shown, together
from dpbench.reproduction import Number, Three, Value
from tests.test_reproduction import figure, reproduction


def value(name="bk", absolute=(), ratio=(), **more):
    given = {"row": "gpt2 B=8", "quantity": "throughput", "unit": "examples/s", "implementation": name}
    return Value(**given | more, absolute=three(*absolute), ratio=three(*ratio))


def three(*columns):
    return Three(*(Number(word=c) if isinstance(c, str) else Number(c) for c in columns))


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
    ("off", "text"), [(0.123, "+12%"), (-0.5, "-50%"), (0.0, "+0%"), (None, ""), (float("inf"), "one OOM")]
)
def test_how_far_apart(off, text):
    assert apart(off) == text


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
    assert bk == ["bk", "80", "oom", "wrong", "0.80", "oom", "one", "OOM", "wrong"]
    assert "not printed" in lines(figure(value("bk", (None, 1.0))))[1]


def test_what_it_is_compared_with_is_said_where_it_is_not_the_baseline():
    assert named(value("bk", relative_to="ghostclip")) == "bk / ghostclip"
    assert named(value("bk")) == named(value("bk", relative_to="")) == "bk"


def test_a_reason_is_shown_and_where_there_is_none_it_says_so():
    far = value("bk", (100.0, 150.0), reason="Because.", sure="found")
    bare, near = value("opacus", (100.0, 50.0)), value("vmap", (100.0, 115.0))
    said = notes(figure(far, bare, near))
    assert "over 15 % apart, 1x (bk gpt2 B=8): Because. [found]" in said
    assert "over 15 % apart, 1x (opacus gpt2 B=8): no reason is known" in said
    assert not any("vmap" in line for line in said)


def test_what_was_left_out_and_at_which_size_is_said():
    said = notes(figure(value(at="gpt2 B=2"), left_out=("s: B=64 (slow)",)))
    assert said[:2] == ["measured at a reduced size: gpt2 B=2", "left out: s: B=64 (slow)"]


def test_shares_are_of_what_can_be_compared():
    some = [value("bk", (100.0, 105.0), (1.0, 1.2)), value("opacus", (100.0, 140.0)), value("vmap", (None, 1.0))]
    assert shares(some) == [
        "of 2 published numbers 1 are predicted within 10 %, 1 within 25 %",
        "of 1 published ratios 0 are predicted within 10 %, 1 within 25 %",
    ]


def test_together_says_how_many_have_no_reason_and_how_many_figures_are_there():
    far = value("bk", (100.0, 150.0), reason="r", sure="open")
    made = reproduction(figure(far, value("opacus", (100.0, 50.0)), seconds=2.0))
    assert together(made)[-2:] == ["2 values are more than 15 % apart, 1 without a reason", "1 of 2 figures, 2.00 s"]
    assert together(reproduction())[-1].startswith("0 of 2 figures")
