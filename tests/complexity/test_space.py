"""Space by modules, worked by hand from the paper's table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.complexity.modules import Layer
from dpbench.complexity.predict import predict
from dpbench.complexity.space import Space, of_network
from dpbench.facts import Facts
from dpbench.records import Workload
from dpbench.registry import ablations, available, load

B, T, D, P = 3, 8, 16, 32
LINEAR = Facts(rule="linear", B=B, T=T, d=D, p=P)
LONG = replace(LINEAR, T=64)
INPUT, OUTPUT, GRADIENT, SAMPLES, GRAMS = B * T * D, B * T * P, P * D, B * P * D, 2 * B * T**2
BIAS = Layer("b", Facts.vector(batch=B, size=P, rule="shift"), size=P)

LITTLE = {
    "nonprivate": (INPUT, 0, 2 * OUTPUT),
    "tf_privacy": (T * D, GRADIENT, 2 * T * P),
    "vmap": (INPUT, SAMPLES, 2 * OUTPUT),
    "opacus": (INPUT, SAMPLES, max(2 * OUTPUT, OUTPUT + GRADIENT)),
    "opacus_improved": (INPUT, SAMPLES, 2 * OUTPUT),
    "fastgradclip": (INPUT, 0, OUTPUT + SAMPLES),
    "fastgradclip_improved": (INPUT, OUTPUT, OUTPUT + SAMPLES),
    "ghostclip": (INPUT, 0, max(2 * OUTPUT, OUTPUT + GRADIENT, OUTPUT + GRAMS)),
    "mixghostclip": (INPUT, 0, max(2 * OUTPUT, OUTPUT + GRADIENT, OUTPUT + GRAMS)),
    "bk": (INPUT, OUTPUT, max(2 * OUTPUT, OUTPUT + GRAMS)),
    "bk_mixghostclip": (INPUT, OUTPUT, max(2 * OUTPUT, OUTPUT + GRAMS)),
    "bk_mixopt": (INPUT, OUTPUT, max(2 * OUTPUT, OUTPUT + GRAMS)),
    "ablation:bk-without-bookkeeping": (INPUT, 0, max(2 * OUTPUT, OUTPUT + GRAMS)),
    "ablation:bk-without-ghost-differentiation": (INPUT, OUTPUT, max(2 * OUTPUT, OUTPUT + GRADIENT, OUTPUT + GRAMS)),
}
"""Elements of activations, of what is kept, and of what passes. Everyone has one gradient beside these: of
tf_privacy that is the sum, and an example's own is kept until its norm is known."""

ALL = [*available(), *ablations()]
DECLARED = sorted({load(name).MODULES for name in ALL})


def layer(facts=LINEAR, name="w", **others):
    return Layer(name, facts, **{"size": facts.p * facts.d} | others)


def elements(layers, modules):
    """Activations, kept and transient, as elements of four bytes."""
    found = of_network(layers, modules)
    return tuple(n // 4 for n in (found.activations, found.kept, found.transient))


@pytest.mark.parametrize("name", ALL)
def test_a_linear_layer_needs_what_the_table_says(name):
    assert LINEAR.ghost_needs_less_space
    assert elements([layer()], load(name).MODULES) == LITTLE[name]
    assert of_network([layer()], load(name).MODULES).gradients == 4 * GRADIENT


@pytest.mark.parametrize(
    ("name", "kept"), [("mixghostclip", 0), ("bk_mixghostclip", 8 * OUTPUT), ("bk_mixopt", SAMPLES)]
)
def test_long_layers_are_instantiated_by_the_mixed_ones(name, kept):
    assert not LONG.ghost_needs_less_space
    passes = 2 * 8 * OUTPUT if name == "bk_mixopt" else max(2 * 8 * OUTPUT, 8 * OUTPUT + SAMPLES)
    assert elements([layer(LONG)], load(name).MODULES) == (8 * INPUT, kept, passes)


def test_grams_of_long_layers_are_what_ghost_norms_pass_through():
    assert elements([layer(LONG)], "1 2a 3 2b") == (8 * INPUT, 8 * OUTPUT, 8 * OUTPUT + 64 * GRAMS)


def test_the_peak_is_all_of_it_at_once():
    assert Space(1, 20, 300, 4000).peak == 4321


@pytest.mark.parametrize("modules", DECLARED)
def test_sixteen_bits_halve_everything_and_tf32_nothing(modules):
    layers = [layer(), BIAS]
    whole = of_network(layers, modules)
    halved = Space(whole.activations // 2, whole.kept // 2, whole.transient // 2, whole.gradients // 2)
    assert of_network(layers, modules, "bf16") == halved
    mixed = of_network(layers, modules, "amp-bf16")
    assert (mixed.activations, mixed.kept, mixed.transient) == (halved.activations, halved.kept, halved.transient)
    assert of_network(layers, modules, "tf32") == whole


@given(st.integers(1, 50))
def test_one_by_one_is_one_example_at_every_batch(batch):
    modules = load("tf_privacy").MODULES
    at = [layer(replace(LINEAR, B=batch)), Layer("b", Facts.vector(batch=batch, size=P, rule="shift"), size=P)]
    assert elements(at, modules) == (T * D, GRADIENT + P, 2 * T * P)
    alone = [layer(replace(LINEAR, B=1)), Layer("b", Facts.vector(batch=1, size=P, rule="shift"), size=P)]
    one_by_one, plain = of_network(at, modules), of_network(alone, "1 2a 2b")
    assert one_by_one == replace(plain, kept=plain.gradients), "the sum, and the gradient of one example"


@pytest.mark.parametrize(
    ("modules", "kept"),
    [
        ("1 2a 2b", 0),
        ("B x (1 2a 2b)", P),
        ("1 2a 4 5", B * P),
        ("1 2a 2b 4 5", B * P),
        ("1 2a 3 2b", B * P),
        ("1 2a 4 2b", B * P),
        ("1 2a (3 2b or 4 5)", B * P),
        ("1 2a 2b 3 2a 2b", 0),
        ("1 2a 4 2a 2b", 0),
    ],
)
def test_a_bias_holds_no_input_and_is_kept_instantiated(modules, kept):
    activations, stays, _ = elements([BIAS], modules)
    assert (activations, stays) == (0, kept)


def test_a_bias_has_no_grams():
    assert elements([BIAS], "1 2a 3 2b")[2] == 2 * B * P


@pytest.mark.parametrize("modules", DECLARED)
def test_frozen_weights_keep_nothing(modules):
    examples = 1 if modules.startswith("B x") else B
    assert elements([layer(frozen=True)], modules) == (0, 0, 2 * examples * T * P)
    assert of_network([layer(frozen=True)], modules).gradients == 0
    trained = layer(name="trained")
    activations, kept, _ = elements([trained], modules)
    assert elements([trained, layer(frozen=True)], modules)[:2] == (activations, kept)


def test_an_embedding_holds_no_activations():
    table = layer(Facts(rule="embedding", B=B, T=T, d=1000, p=D))
    assert elements([table], "1 2a 3 2b") == (0, B * T * D, max(2 * B * T * D, B * T * D + GRAMS))
    assert elements([table], "1 2a 4 5")[:2] == (0, B * 1000 * D)


def test_uses_of_a_shared_weight_share_its_samples_and_meet_in_one_gram():
    pair = [layer(uses=2)] * 2
    assert elements(pair, "1 2a 4 5") == (2 * INPUT, SAMPLES, 4 * OUTPUT)
    assert elements(pair, "1 2a 2b") == (2 * INPUT, 0, 4 * OUTPUT)
    assert elements(pair, "1 2a 3 2b") == (2 * INPUT, 2 * OUTPUT, max(4 * OUTPUT, 2 * OUTPUT + 4 * GRAMS))


sizes = st.builds(
    lambda T, d, p: Facts(rule="linear", B=B, T=T, d=d, p=p), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40)
)


@given(st.lists(sizes, min_size=1, max_size=5), st.sampled_from(DECLARED))
def test_over_layers_activations_and_kept_are_sums_and_transient_is_a_maximum(facts, modules):
    network = [layer(f, name=f"{i}") for i, f in enumerate(facts)]
    whole, each = of_network(network, modules), [of_network([one], modules) for one in network]
    assert whole.activations == sum(s.activations for s in each)
    assert whole.kept == sum(s.kept for s in each)
    assert whole.transient == max(s.transient for s in each)


parameters = st.builds(
    lambda facts, uses, frozen, bias: (facts, uses, frozen, bias),
    sizes,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(parameters, min_size=1, max_size=5))
def test_gradients_are_the_same_for_everyone_one_for_each_trained_parameter(drawn):
    """However often it is used, and whatever is done with it; none of what is frozen."""
    network, expected = [], 0
    for i, (facts, uses, frozen, bias) in enumerate(drawn):
        network += [layer(facts, name=f"{i}", uses=uses, frozen=frozen)] * uses
        expected += 0 if frozen else facts.p * facts.d
        if bias and not frozen:
            network.append(Layer(f"{i}.bias", Facts.vector(batch=B, size=facts.p, rule="shift"), size=facts.p))
            expected += facts.p
    assert {of_network(network, modules).gradients for modules in DECLARED} == {4 * expected}


@given(st.integers(1, 50), st.sampled_from(DECLARED))
def test_gradients_do_not_grow_with_the_batch(batch, modules):
    assert of_network([layer(replace(LINEAR, B=batch))], modules).gradients == 4 * GRADIENT


@given(st.integers(1, 20), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_kept_of_opacus_grows_with_bpd_and_of_bk_with_btp(batch, T, d, p):
    at = [layer(Facts(rule="linear", B=batch, T=T, d=d, p=p))]
    assert elements(at, load("opacus").MODULES)[1] == batch * p * d
    assert elements(at, load("bk").MODULES)[1] == batch * T * p


def test_a_prediction_has_the_space_of_its_uses_in_its_precision():
    workload = Workload(model="synthetic:mlp(width=16,depth=2)", batch=4)
    parameters = 2 * (16 * 16 + 16)
    for precision, item in (("fp32", 4), ("bf16", 2)):
        (found,) = predict(replace(workload, precision=precision), ["opacus"])
        assert found.space == Space(
            activations=item * 2 * 4 * 16,
            kept=item * 4 * parameters,
            transient=item * (4 * 16 + 16 * 16),
            gradients=item * parameters,
        )


@pytest.mark.parametrize("name", ["ghostclip", "fastgradclip", "bk"])
def test_no_batched_private_step_needs_less_than_a_plain_one(name):
    network = [layer(replace(LINEAR, T=1), name=f"{i}") for i in range(4)]
    assert of_network(network, load(name).MODULES).peak >= of_network(network, load("nonprivate").MODULES).peak
