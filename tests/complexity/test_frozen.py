"""Products with frozen weights: T, p and d worked by hand, and what comes first."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench.complexity.faked import Faked
from dpbench.complexity.frozen import FrozenUses
from dpbench.complexity.layers import layers
from dpbench.complexity.predict import predict
from dpbench.records import Workload
from tests.models.tiny import TINY


def frozen(model):
    return model.requires_grad_(False)


def seen(model, x, call=None):
    """The uses of one forward; ``x`` is the batch, or what comes of it."""
    with FrozenUses(model, x.shape[0]) as uses:
        (call or model)(x)
    assert all(layer.frozen for layer in uses.layers)
    return uses.layers


def shape(layer):
    """Name, rule, T, d and p."""
    facts = layer.facts
    return layer.name, facts.rule, facts.T, facts.d, facts.p


def holding(**weights):
    model = nn.Module()
    for name, size in weights.items():
        model.register_parameter(name, nn.Parameter(torch.ones(size), requires_grad=False))
    return model


@pytest.mark.parametrize(("middle", "T"), [((), 1), ((7,), 7), ((2, 3), 6)])
def test_a_linear_layer_has_the_positions_between_batch_and_features(middle, T):
    (layer,) = seen(frozen(nn.Linear(3, 5)), torch.ones(2, *middle, 3))
    assert shape(layer) == ("weight", "linear", T, 3, 5)
    assert (layer.facts.B, layer.size, layer.uses) == (2, 15, 1)
    assert layer.facts.product_flops == 2 * 2 * T * 3 * 5


def test_a_convolution_has_output_positions_and_the_channels_of_a_group():
    (layer,) = seen(frozen(nn.Conv2d(6, 4, (3, 2), stride=2, groups=2)), torch.ones(2, 6, 9, 8))
    assert shape(layer) == ("weight", "convolution", 4 * 4, 3 * 3 * 2, 4)
    assert layer.size == 4 * 3 * 3 * 2


@pytest.mark.parametrize(
    ("module", "x", "found"),
    [
        (nn.Conv1d(4, 6, 3), (2, 4, 10), (8, 12, 6)),
        (nn.Conv3d(2, 3, 2), (2, 2, 3, 4, 5), (2 * 3 * 4, 2 * 8, 3)),
        (nn.Conv2d(4, 4, 3, padding=1, groups=4), (2, 4, 5, 5), (25, 9, 4)),
    ],
)
def test_so_have_convolutions_of_other_kinds(module, x, found):
    (layer,) = seen(frozen(module), torch.ones(x))
    assert shape(layer) == ("weight", "convolution", *found)


def test_addmm_of_transformers_has_its_features_last():
    pytorch_utils = pytest.importorskip("transformers.pytorch_utils")
    (layer,) = seen(frozen(pytorch_utils.Conv1D(6, 3)), torch.ones(2, 5, 3))
    assert shape(layer) == ("weight", "linear", 5, 3, 6)


@pytest.mark.parametrize(
    "multiply",
    [
        torch.matmul,
        torch.mm,
        lambda x, w: x @ w,
        lambda x, w: x.matmul(w),
        lambda x, w: x.mm(w),
        lambda x, w: torch.matmul(input=x, other=w),
        lambda x, w: torch.addmm(torch.zeros(6), x, w),
        lambda x, w: torch.zeros(2, 6).addmm(x, w),
    ],
)
def test_a_matrix_product_has_its_features_last(multiply):
    model = holding(w=(3, 6))
    (layer,) = seen(model, torch.ones(2, 3), lambda x: multiply(x, model.w))
    assert shape(layer) == ("w", "linear", 1, 3, 6)


@pytest.mark.parametrize("multiply", [torch.matmul, lambda x, w: x @ w])
def test_a_matrix_product_has_positions_too(multiply):
    model = holding(w=(3, 6))
    (layer,) = seen(model, torch.ones(2, 7, 3), lambda x: multiply(x, model.w))
    assert shape(layer) == ("w", "linear", 7, 3, 6)


def test_a_weight_that_mixes_positions_stands_on_the_left():
    """As in an MLP-Mixer that is written as W x: the features are T of the product, the positions d and p."""
    model = holding(w=(3, 5))
    (layer,) = seen(model, torch.ones(2, 5, 6), lambda x: torch.matmul(model.w, x))
    assert layer.facts.product_flops == 2 * 2 * 6 * 3 * 5


def test_attention_multiplies_inside():
    model = frozen(nn.MultiheadAttention(6, 2, batch_first=True))
    found = seen(model, torch.ones(2, 4, 6), lambda x: model(x, x, x))
    assert [shape(layer) for layer in found] == [
        ("in_proj_weight", "linear", 4, 6, 18),
        ("out_proj.weight", "linear", 4, 6, 6),
    ]


def test_so_does_a_recurrent_layer_at_every_time():
    model = frozen(nn.LSTM(3, 5, batch_first=True))
    first, *others = seen(model, torch.ones(2, 4, 3))
    assert shape(first) == ("weight_ih_l0", "linear", 4, 3, 20)
    assert [shape(layer) for layer in others] == [("weight_hh_l0", "linear", 1, 5, 20)] * 4


def test_trained_weights_vectors_and_other_functions_are_none_of_them():
    model = nn.Sequential(nn.Embedding(9, 4), nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 2))
    frozen(model)
    model[2].requires_grad_(True)
    found = seen(model, torch.zeros(2, 3, dtype=torch.long))
    assert [layer.name for layer in found] == ["3.weight"]


def test_every_use_is_seen_in_the_order_of_the_forward():
    model = holding(a=(4, 4), b=(4, 4))
    found = seen(model, torch.ones(2, 4), lambda x: F.linear(F.linear(F.linear(x, model.b), model.a), model.b))
    assert [layer.name for layer in found] == ["b", "a", "b"]


@pytest.mark.parametrize("trained", range(4))
def test_first_are_those_before_which_nothing_needs_a_gradient(trained):
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))
    frozen(model)[trained].requires_grad_(True)
    found = {layer.name: layer.facts.first for layer in seen(model, torch.ones(2, 4))}
    assert found == {f"{i}.weight": i < trained for i in range(4) if i != trained}


def test_where_nothing_is_trained_all_are_first():
    model = frozen(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 2)))
    assert all(layer.facts.first for layer in seen(model, torch.ones(2, 3, 3, 3)))


def test_a_trained_branch_beside_does_not_come_before():
    model = nn.Module()
    model.left, model.right = nn.Linear(3, 3), nn.Linear(3, 3).requires_grad_(False)
    (layer,) = seen(model, torch.ones(2, 3), lambda x: model.left(x) + model.right(x))
    assert layer.facts.first


def test_a_layer_s_own_bias_does_not_come_before_it():
    model = nn.Linear(3, 4)
    model.weight.requires_grad_(False)
    (layer,) = seen(model, torch.ones(2, 3))
    assert layer.facts.first


def test_in_a_workload_with_trained_biases_the_first_product_is_first():
    workload = Workload(model="synthetic:mlp(width=8,depth=3)", batch=2, trainable="biases")
    found = {x.name: x.facts.first for x in layers(Faked(workload)) if x.frozen}
    assert found == {"0.weight": True, "2.weight": False, "4.weight": False}
    (plain,) = predict(workload, ["nonprivate"])
    product = 2 * 2 * 8 * 8
    assert plain.trace.flops == plain.analytic == {"1": 3 * product, "2a": 2 * product}


def test_beside_adapters_the_layers_that_they_adapt_are_frozen():
    pytest.importorskip("peft")
    model = "synthetic:transformer(width=16,heads=2,vocab=50,depth=1)"
    found = layers(Faked(Workload(model=model, batch=3, seq_len=8, trainable="lora:r=2,targets=qkv+down")))
    prefix = "base_model.model.blocks.0."
    products = {x.name.removeprefix(prefix): (shape(x)[2:], x.facts.first) for x in found if x.frozen}
    assert products == {
        # Nothing before the first adapter is trained.
        "qkv.base_layer.weight": ((8, 16, 48), True),
        "out.weight": ((8, 16, 16), False),
        "up.weight": ((8, 16, 64), False),
        "down.base_layer.weight": ((8, 64, 16), False),
        "base_model.model.head.weight": ((8, 16, 50), False),
    }
    adapters = {x.name.removeprefix(prefix): (shape(x)[2:], x.facts.first) for x in found if not x.frozen}
    assert adapters == {
        "qkv.lora_A.default.weight": ((8, 16, 2), True),
        "qkv.lora_B.default.weight": ((8, 2, 48), False),
        "down.lora_A.default.weight": ((8, 64, 2), False),
        "down.lora_B.default.weight": ((8, 2, 16), False),
    }


def test_beside_adapters_of_transformers_addmm_is_frozen():
    pytest.importorskip("peft")
    found = [x for x in layers(Faked(TINY["gpt2 lora"])) if x.frozen]
    first, *others = found
    assert first.name.endswith("h.0.attn.c_attn.base_layer.weight")
    assert shape(first)[1:] == ("linear", 8, 16, 48)
    assert first.facts.first
    assert not any(layer.facts.first for layer in others)
    head = others[-1]
    assert (head.facts.d, head.facts.p) == (16, 60), "the head is tied to a frozen embedding, and multiplies"
