"""The uses of parameters in a forward: names, sizes, how often, what is first, and what is frozen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers, trained
from dpbench.errors import Refused
from dpbench.models import build
from dpbench.records import Workload
from tests.models.tiny import TINY

MLP = Workload(model="synthetic:mlp(width=8,depth=3)", batch=4, seq_len=5, classes=6)


def of(workload):
    return layers(Faked(workload))


def shape(layer):
    facts = layer.facts
    return facts.rule, facts.T, facts.d, facts.p


def test_a_linear_network_in_the_order_of_its_forward():
    found = of(MLP)
    assert [layer.name for layer in found] == [f"{i}.{kind}" for i in (0, 2, 4) for kind in ("weight", "bias")]
    assert [layer.size for layer in found] == [64, 8, 64, 8, 48, 6]
    weights, biases = found[::2], found[1::2]
    assert [shape(layer) for layer in weights] == [("linear", 5, 8, 8), ("linear", 5, 8, 8), ("linear", 5, 8, 6)]
    assert [layer.facts.first for layer in weights] == [True, False, False]
    assert all(layer.facts.matrix for layer in weights)
    assert not any(layer.facts.matrix for layer in biases)
    assert {(layer.uses, layer.frozen, layer.facts.B) for layer in found} == {(1, False, 4)}


def test_a_convolution_has_the_pixels_of_its_output():
    found = of(Workload(model="torchvision:resnet18", batch=2, image_size=32, norm="group"))
    shapes = {layer.name: shape(layer) for layer in found if layer.facts.matrix}
    assert shapes["conv1.weight"] == ("convolution", 16 * 16, 3 * 7 * 7, 64)
    assert shapes["layer2.0.downsample.0.weight"] == ("convolution", 4 * 4, 64, 128)
    assert shapes["fc.weight"] == ("linear", 1, 512, 1000)
    assert [layer.name for layer in found if layer.facts.first and layer.facts.matrix] == ["conv1.weight"]


@pytest.mark.parametrize("kind", ["gpt2 untied", "cnn", "transformer", "vit"])
def test_every_parameter_has_a_use_and_its_size(kind):
    found = of(TINY[kind])
    sizes = {layer.name: layer.size for layer in found}
    task = build(TINY[kind])
    assert sizes == {name: p.numel() for name, p in task.model.named_parameters()}
    assert sum(sizes.values()) == task.parameters


def test_a_tied_weight_is_used_twice_as_a_lookup_and_as_a_product():
    first, *between, last = of(TINY["gpt2"])
    assert first.name == last.name == "transformer.wte.weight"
    assert (first.facts.rule, last.facts.rule) == ("embedding", "linear")
    assert (first.uses, last.uses) == (2, 2)
    assert first.size == last.size == 60 * 16
    assert (first.facts.product_flops, last.facts.product_flops) == (0, 2 * 5 * 8 * 16 * 60)
    assert {layer.uses for layer in between} == {1}


def test_an_untied_one_is_another():
    first, *_, last = of(TINY["gpt2 untied"])
    assert (first.name, last.name) == ("transformer.wte.weight", "lm_head.weight")
    assert (first.uses, last.uses) == (1, 1)


def test_the_batch_changes_nothing_but_itself():
    small, large = of(MLP), of(replace(MLP, batch=1000))
    assert [replace(layer, facts=replace(layer.facts, B=4)) for layer in large] == small


@pytest.mark.parametrize("precision", ["tf32", "amp-bf16"])
def test_nor_does_the_precision(precision):
    assert of(replace(MLP, precision=precision)) == of(MLP)


def test_frozen_ones_come_last():
    found = of(replace(MLP, trainable="pattern:2.*"))
    assert [(layer.name, layer.frozen) for layer in found] == [
        ("2.weight", False),
        ("2.bias", False),
        ("0.weight", True),
        ("4.weight", True),
    ]
    assert {layer.name: layer.facts.first for layer in found if layer.facts.matrix} == {
        "0.weight": True,
        "2.weight": True,
        "4.weight": False,
    }
    assert [layer.size for layer in found] == [64, 8, 64, 48]


def test_where_the_last_layer_alone_is_trained_all_others_are_first():
    found = of(TINY["roberta last layer"])
    trained = {layer.name for layer in found if not layer.frozen}
    assert trained == {n for n, p in build(TINY["roberta last layer"]).model.named_parameters() if p.requires_grad}
    assert all(layer.facts.first for layer in found if layer.frozen)


def test_a_frozen_weight_looks_as_it_does_where_it_is_trained():
    trained = {layer.name: shape(layer) for layer in of(MLP)}
    frozen = {layer.name: shape(layer) for layer in of(replace(MLP, trainable="biases")) if layer.frozen}
    assert frozen == {name: trained[name] for name in ("0.weight", "2.weight", "4.weight")}


def test_a_model_that_no_step_can_train_is_refused():
    with pytest.raises(Refused, match="training mode"):
        of(Workload(model="torchvision:resnet18", batch=2, image_size=32))


def test_of_trained_matrices_there_is_one_row_each_with_t_of_all_uses():
    tied, *others = trained(Faked(TINY["gpt2"]))
    T = TINY["gpt2"].seq_len
    assert (tied[0], tied[1], {*tied[2:]}) == ("transformer.wte.weight", 2 * T, {60, 16})
    assert len({name for name, *_ in others}) == len(others)
    assert trained(Faked(replace(MLP, batch=1000))) == trained(Faked(MLP))
