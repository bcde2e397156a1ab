"""Models of which a part is trained."""

from __future__ import annotations

import fnmatch
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, integers, vectors


def trained(model: nn.Module, *patterns: str) -> nn.Module:
    """The model with all parameters frozen but those whose names fit a pattern."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(any(fnmatch.fnmatch(name, pattern) for pattern in patterns))
    return model


def mlp() -> nn.Module:
    """Three linear layers, 0, 2 and 4, on (B, T, 6)."""
    layers = nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()
    return nn.Sequential(*layers)


def text() -> nn.Module:
    """Embedding, norm, layer, norm and head, on ids."""
    model = nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 5), nn.Tanh(), nn.LayerNorm(5))
    return Net(lambda m, x: m.head(m.body(m.e(x)).mean(1)), e=nn.Embedding(9, 5), body=model, head=nn.Linear(5, 3))


@case("opacus issue 542")
def weights() -> Problem:
    """Weights are frozen and biases trained, in every layer."""
    return classified(trained(mlp(), "*.bias"), vectors(5, 4, 6))


@case("opacus issue 436")
def one_weight() -> Problem:
    """One layer's weight is frozen and its bias trained; in the others both are trained."""
    return classified(trained(mlp(), "0.*", "2.bias", "4.*"), vectors(5, 4, 6))


@case("opacus issue 436")
def biases() -> Problem:
    """Biases are frozen and weights trained."""
    return classified(trained(mlp(), "*.weight"), vectors(5, 4, 6))


@case("BiTFiT: Ben Zaken et al. 2021, 2106.10199")
def all_but_biases() -> Problem:
    """BiTFiT: the biases of linear and norm layers, and the head."""
    return classified(trained(text(), "*.bias", "head.*"), integers(9, 5, 4))


@case("property")
def biases_of_convolutions() -> Problem:
    """The biases of convolutions and group norms alone."""
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 2, 2), nn.Flatten(), nn.Linear(8, 3)
    )
    return classified(trained(model, "*.bias"), vectors(5, 2, 5, 5))


@case("property")
def all_but_norms() -> Problem:
    """Scale and shift of the norm layers are trained, nothing else."""
    return classified(trained(text(), "body.0.*", "body.3.*"), integers(9, 5, 4))


@case("property")
def all_but_scales() -> Problem:
    """The scale of a norm is trained and its shift is not."""
    return classified(trained(text(), "body.0.weight", "body.3.weight", "head.weight"), integers(9, 5, 4))


@case("property")
def all_but_embeddings() -> Problem:
    """The embedding alone is trained, below everything that is frozen."""
    return classified(trained(text(), "e.weight"), integers(9, 5, 4))


@case("property")
def all_but_last() -> Problem:
    """Linear probing: the last layer alone, with no graph below it."""
    return classified(trained(mlp(), "4.*"), vectors(5, 4, 6))


@case("property")
def all_but_first() -> Problem:
    """The first layer alone: the backward runs through frozen ones all the way."""
    return classified(trained(mlp(), "0.*"), vectors(5, 4, 6))


@case("property")
def middle() -> Problem:
    """A frozen layer between trained ones."""
    return classified(trained(mlp(), "0.*", "4.*"), vectors(5, 4, 6))


class LoRA(nn.Module):
    """A frozen linear layer and a product of two small trained ones beside it."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features))
        self.b = nn.Parameter(torch.randn(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """The layer, and what was added to it."""
        out: Tensor = self.base(x)
        return out + F.linear(F.linear(x, self.a), self.b) * 0.5


@case("LoRA: Hu et al. 2021, 2106.09685")
def lora() -> Problem:
    """Two small layers beside each frozen one."""
    layers = LoRA(nn.Linear(6, 5), 2), nn.Tanh(), LoRA(nn.Linear(5, 3), 2), nn.Flatten()
    return classified(nn.Sequential(*layers), vectors(5, 4, 6))


@case("LoRA: Hu et al. 2021, 2106.09685")
def lora_merged() -> Problem:
    """The product of the small weights is added to the frozen weight before it is used."""

    def forward(m: Any, x: Tensor) -> Tensor:
        out: Tensor = m.head(F.linear(x, m.base.weight + m.b @ m.a).tanh()).mean(1)
        return out

    base = nn.Linear(6, 5, False).requires_grad_(False)
    parts = {"a": torch.randn(2, 6), "b": torch.randn(5, 2), "base": base, "head": nn.Linear(5, 3)}
    return classified(Net(forward, **parts), vectors(5, 4, 6))


def peft(**options: Any) -> Problem:
    """Adapters that peft puts into two layers."""
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(r=2, lora_alpha=4, target_modules=["0", "2"], init_lora_weights=False, **options)
    return classified(inject_adapter_in_model(config, mlp()), vectors(5, 4, 6))


@case("opacus issue 820", needs="peft")
def lora_of_peft() -> Problem:
    """LoRA as peft adds it: modules that call the frozen ones inside them."""
    return peft()


@case("DoRA: Liu et al. 2024, 2402.09353", needs="peft")
def dora_of_peft() -> Problem:
    """DoRA as peft adds it: a trained length of a weight that is computed from frozen and trained ones."""
    return peft(use_dora=True)


@case("prompt tuning: Lester et al. 2021, 2104.08691")
def all_but_prompts() -> Problem:
    """Prompt tokens alone, before a frozen model: no call of a module reads what is trained."""
    block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    model = Net(
        lambda m, x: m.head(m.block(torch.cat([m.prompt.expand(len(x), -1, -1), x], 1)).mean(1)),
        prompt=torch.randn(1, 2, 6), block=block, head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(trained(model, "prompt"), vectors(5, 4, 6))


@case("property")
def half_of_attention() -> Problem:
    """nn.MultiheadAttention of which the input weight is frozen and the output weight trained."""
    model = Net(
        lambda m, x: m.head(m.attention(x, x, x)[0].mean(1)),
        attention=nn.MultiheadAttention(6, 2, batch_first=True), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(trained(model, "attention.out_proj.*", "attention.in_proj_bias"), vectors(5, 4, 6))


@case("property")
def tied_and_frozen() -> Problem:
    """A tied embedding is frozen, and the layer between its two uses trained."""
    model = Net(lambda m, x: F.linear(m.a(m.e(x)).tanh(), m.e.weight).mean(1), e=nn.Embedding(9, 5), a=nn.Linear(5, 5))
    return classified(trained(model, "a.*"), integers(9, 5, 4))


@case("property")
def input_with_gradient() -> Problem:
    """The input asks for a gradient of its own, above a frozen layer."""
    model = Net(lambda m, x: m.body(x.detach().requires_grad_()), body=trained(mlp(), "2.*", "4.*"))
    return classified(model, vectors(5, 4, 6))


@case("opacus issue 319")
def batch_norm_in_eval() -> Problem:
    """A frozen BatchNorm in eval mode, as in a pretrained network, between trained convolutions."""
    norm = nn.BatchNorm2d(4).requires_grad_(False).eval()
    model = nn.Sequential(nn.Conv2d(2, 4, 3), norm, nn.ReLU(), nn.Conv2d(4, 2, 2), nn.Flatten(), nn.Linear(8, 3))
    return classified(model, vectors(5, 2, 5, 5))
