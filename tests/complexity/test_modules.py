"""Costs by modules, worked by hand from the paper's table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpbench.complexity.modules import Layer, of_kernels, of_network, of_parameter, parts
from dpbench.errors import DpbenchError
from dpbench.facts import Facts
from dpbench.registry import ablations, available, load

LINEAR = Facts(rule="linear", B=2, T=8, d=16, p=32)
WHOLE = 2 * 2 * 8 * 16 * 32
GHOST = 2 * 2 * 8**2 * (16 + 32)
STORED = 2 * 2 * 16 * 32
LONG = Facts(rule="linear", B=2, T=64, d=16, p=32)
PAIR = [Layer("w", LINEAR, uses=2, size=16 * 32)] * 2
BIAS = Facts.vector(batch=2, size=32, rule="shift")

LEADING = {
    "nonprivate": 3 * WHOLE,
    "tf_privacy": 3 * WHOLE,
    "vmap": 3 * WHOLE + STORED,
    "opacus": 4 * WHOLE + STORED,
    "opacus_improved": 3 * WHOLE + STORED,
    "fastgradclip": 5 * WHOLE,
    "fastgradclip_improved": 4 * WHOLE,
    "ghostclip": 5 * WHOLE + GHOST,
    "mixghostclip": 5 * WHOLE + GHOST,
    "bk": 3 * WHOLE + GHOST,
    "bk_mixghostclip": 3 * WHOLE + GHOST,
    "bk_mixopt": 3 * WHOLE + GHOST,
    "ablation:bk-without-bookkeeping": 4 * WHOLE + GHOST,
    "ablation:bk-without-ghost-differentiation": 4 * WHOLE + GHOST,
}


def of_layer(facts, modules):
    return of_parameter([Layer("w", facts, size=facts.p * facts.d)], modules)


@pytest.mark.parametrize("name", [*available(), *ablations()])
def test_a_linear_layer_costs_what_the_table_says(name):
    assert LINEAR.ghost_needs_less_space
    assert sum(of_layer(LINEAR, load(name).MODULES).values()) == LEADING[name]


@pytest.mark.parametrize(("name", "wholes"), [("mixghostclip", 5), ("bk_mixghostclip", 4), ("bk_mixopt", 3)])
def test_long_layers_are_instantiated_by_the_mixed_ones(name, wholes):
    assert not LONG.ghost_needs_less_space
    stored = STORED if name == "bk_mixopt" else 0
    assert sum(of_layer(LONG, load(name).MODULES).values()) == wholes * 8 * WHOLE + stored


def test_a_first_layer_has_no_output_gradient():
    first = Facts(rule="linear", B=2, T=8, d=16, p=32, first=True)
    assert of_layer(first, "1 2a 2b") == {"1": WHOLE, "2b": WHOLE}


def test_groups_make_the_first_gram_dearer():
    grouped = Facts(rule="convolution", B=1, T=4, d=9, p=8, groups=8)
    assert of_layer(grouped, "3")["3"] == 2 * 4**2 * (8 + 8 * 9)


def test_at_one_position_a_ghost_norm_has_no_products():
    assert of_layer(Facts(rule="linear", B=2, T=1, d=16, p=32), "3")["3"] == 0


@pytest.mark.parametrize("modules", ["1 2a 2b 4 5", "1 2a 3 2b", "1 2a 4 2b"])
def test_a_bias_costs_a_product_where_its_sum_is_taken_from_what_was_kept(modules):
    assert sum(of_layer(BIAS, modules).values()) == 2 * 2 * 32


@pytest.mark.parametrize("modules", ["1 2a 2b", "1 2a 4 2a 2b", "1 2a 2b 3 2a 2b"])
def test_and_nothing_where_autograd_adds_it_up(modules):
    assert not of_layer(BIAS, modules)


def test_an_embedding_multiplies_nothing_but_what_was_stored():
    embedding = Facts(rule="embedding", B=2, T=8, d=1000, p=16)
    assert not of_layer(embedding, "1 2a 3 2b")
    assert of_layer(embedding, "1 2a 4 5") == {"5": 2 * 2 * 1000 * 16}


def test_what_is_stored_for_a_shared_weight_is_stored_once():
    assert of_network(PAIR, "4 5") == {"4": 2 * WHOLE, "5": STORED}


def test_the_norm_of_a_shared_weight_is_one_gram_over_all_of_its_uses():
    assert of_network(PAIR, "3") == {"3": 2 * GHOST}
    assert of_kernels(PAIR, "3") == {("3", "w"): 4 * GHOST}


def test_an_embedding_and_its_head_meet_in_one_product_more():
    lookup = Facts(rule="embedding", B=2, T=8, d=32, p=16)
    tied = [Layer("w", LINEAR, uses=2, size=512), Layer("w", lookup, uses=2, size=512)]
    assert of_kernels(tied, "3") == {("3", "w"): GHOST + 2 * 2 * 8 * 8 * 16}
    assert of_network(tied, "3") == {"3": GHOST}


def test_a_kernel_that_is_not_the_formula_s_counts_as_what_it_is():
    pixels = Facts(rule="convolution", B=2, T=4, d=9, p=8, norm_flops=1000)
    assert of_kernels([Layer("w", pixels)], "3") == {("3", "w"): 1000}
    assert of_network([Layer("w", pixels)], "3") == {"3": 2 * 2 * 16 * (8 + 9)}


@pytest.mark.parametrize("modules", ["1 2a 3 2b", "1 2a 2b 4 5", "1 2a (3 2b or 4 5)"])
def test_a_frozen_weight_costs_a_forward_and_an_output_gradient(modules):
    assert of_network([Layer("w", LINEAR, frozen=True)], modules) == {"1": WHOLE, "2a": WHOLE}
    first = replace(LINEAR, first=True)
    assert of_network([Layer("w", first, frozen=True)], modules) == {"1": WHOLE}
    assert of_network([Layer("w", LINEAR, frozen=True)], "1 2a 2b 3 2a 2b")["2a again"] == WHOLE


def test_what_can_only_be_instantiated_is_and_added_up_from_there():
    """A weight that is derived from its parameter has no ghost norm; the parameter is larger than what is used."""
    derived = Layer("w", replace(LINEAR, matrix=False), size=1000)
    assert of_network([derived], "1 2a 3 2b") == {"1": WHOLE, "2a": WHOLE, "4": WHOLE, "2b": 2 * 2 * 1000}


def test_the_grammar_of_modules():
    assert parts("1 2a (3 2b or 4 5)", ghost=True) == ["1", "2a", "3", "2b"]
    assert parts("1 2a (3 2b or 4 5)", ghost=False) == ["1", "2a", "4", "5"]
    assert parts("1 2a 4 2a 2b", ghost=True) == ["1", "2a", "4", "2a again", "2b again"]
    assert parts("B x (1 2a 2b)", ghost=True) == ["1", "2a", "2b"]
    for nonsense in ("", "1 2c", "fast"):
        with pytest.raises(DpbenchError, match="cannot read the modules"):
            parts(nonsense, ghost=True)
