"""Published figures: each with a source, and of things that exist."""

from __future__ import annotations

from dpbench.cards import card
from dpbench.published import claims, figures, leading_terms
from dpbench.registry import available


def test_every_figure_has_a_source_a_card_and_rows_with_models():
    for figure in figures().values():
        assert figure.source
        assert card(figure.device).peaks
        assert all("model" in row for row in figure.rows)


def test_values_are_of_implementations_that_exist():
    for figure in figures().values():
        for row in figure.rows:
            for values in row.values():
                assert not isinstance(values, dict) or set(values) <= set(available())
    assert set(leading_terms()) <= set(available())


def test_claims_are_numbers_or_bounds():
    assert claims()["bk_time_complexity_over_nonprivate_gpt2"] == 1.03
