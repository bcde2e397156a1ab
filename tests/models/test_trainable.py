import sys

import pytest
import torch
from torch import nn

from dpbench.errors import DpbenchError, MissingExtra
from dpbench.models.trainable import select


def network():
    block = nn.Sequential()
    block.add_module("attn", nn.Linear(4, 4))
    block.add_module("norm", nn.LayerNorm(4))
    model = nn.Sequential()
    model.add_module("block", block)
    model.add_module("head", nn.Linear(4, 2))
    return model


def trained(model):
    return [name for name, p in model.named_parameters() if p.requires_grad]


@pytest.mark.parametrize(
    ("trainable", "names"),
    [
        ("all", [f"{layer}.{kind}" for layer in ("block.attn", "block.norm", "head") for kind in ("weight", "bias")]),
        ("biases", ["block.attn.bias", "block.norm.bias", "head.bias"]),
        ("last", ["head.weight", "head.bias"]),
        ("norms", ["block.norm.weight", "block.norm.bias"]),
        ("pattern:*.attn.*", ["block.attn.weight", "block.attn.bias"]),
        ("pattern:head.weight", ["head.weight"]),
    ],
)
def test_only_what_is_asked_for_is_trained(trainable, names):
    assert trained(select(network(), trainable)) == names


def test_adapters_alone_are_trained_and_both_their_factors_have_a_gradient():
    pytest.importorskip("peft")
    model = select(network(), "lora:r=3,targets=attn")
    names = trained(model)
    assert len(names) == 2
    assert all("attn.lora_" in name for name in names)
    assert {tuple(p.shape) for p in model.parameters() if p.requires_grad} == {(3, 4), (4, 3)}
    model(torch.randn(2, 4)).sum().backward()
    assert all(p.grad.any() for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize(
    ("trainable", "message"),
    [
        ("bias", r"unknown trainable 'bias'. Did you mean biases"),
        ("pattern:nothing.*", "selects no parameter; the names are like block.attn.weight"),
        ("lora:r=2,target=attn", r"unknown option of lora 'target'. Did you mean targets\?"),
        ("lora:r=x,targets=attn", "lora has r=x; expected a whole number, 1 or more"),
        ("lora:r=0,targets=attn", "lora has r=0; expected a whole number"),
        ("lora:r,targets=attn", "option 'r' of .* has no value; expected r=value"),
        ("lora:8", "unknown option of lora '8'"),
        ("lorax", r"unknown trainable 'lorax'"),
        ("lora:r=2,targets=nothing", r"lora cannot be put on this model: .*nothing"),
    ],
)
def test_a_mistake_is_said(trainable, message):
    if trainable.startswith("lora"):
        pytest.importorskip("peft")
    with pytest.raises(DpbenchError, match=message):
        select(network(), trainable)


def test_the_last_layer_may_share_its_weight():
    model = network()
    model.embedding = nn.Embedding(2, 4)
    model.head = nn.Linear(4, 2, bias=False)
    model.head.weight = model.embedding.weight
    assert trained(select(model, "last")) == ["head.weight"]
    tied = nn.Sequential(nn.Embedding(2, 4), nn.LayerNorm(4), nn.Linear(4, 2, bias=False))
    tied[2].weight = tied[0].weight
    assert trained(select(tied, "last")) == ["0.weight"]


def test_a_model_without_biases_has_none_to_train():
    with pytest.raises(DpbenchError, match="selects no parameter"):
        select(nn.Sequential(nn.Linear(2, 2, bias=False)), "biases")


def test_without_peft_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"peft is not installed.*pip install 'dpsgd-bench\[models\]'"):
        select(network(), "lora:r=2,targets=attn")
