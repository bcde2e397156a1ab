"""Attention, and the parameters that come with it: class tokens, positions, prompts, masks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, integers, vectors


def attended(attention: nn.MultiheadAttention, **given: Any) -> nn.Module:
    """Self-attention over (B, T, 6), a mean over the positions, and three classes."""

    def forward(m: Any, x: Tensor) -> Tensor:
        batch_first = m.attention.batch_first
        x = x if batch_first else x.transpose(0, 1)
        logits: Tensor = m.head(m.attention(x, x, x, need_weights=False, **given)[0].mean(1 if batch_first else 0))
        return logits

    return Net(forward, attention=attention, head=nn.Linear(6, 3))


def split(x: Tensor, heads: int) -> Tensor:
    """(B, T, heads n) -> (B, heads, T, n)."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


@case("property")
def module() -> Problem:
    """nn.MultiheadAttention, batch first: one weight for queries, keys and values."""
    return classified(attended(nn.MultiheadAttention(6, 2, batch_first=True)), vectors(5, 4, 6))


@case("property")
def module_sequence_first() -> Problem:
    """nn.MultiheadAttention as it is by default, (T, B, d), with B = T."""
    return classified(attended(nn.MultiheadAttention(6, 2)), vectors(5, 5, 6))


@case("property")
def module_with_causal_mask() -> Problem:
    """nn.MultiheadAttention with an attn_mask (T, T) that all examples share."""
    mask = nn.Transformer.generate_square_subsequent_mask(4) < 0
    return classified(attended(nn.MultiheadAttention(6, 2, batch_first=True), attn_mask=mask), vectors(5, 4, 6))


@case("property")
def module_with_other_keys() -> Problem:
    """kdim and vdim: three weights of three sizes, and keys that are more than the queries."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"], batch["k"], batch["v"]), batch["y"], reduction="none")

    model = Net(
        lambda m, q, k, v: m.head(m.attention(q, k, v, need_weights=False)[0].mean(1)),
        attention=nn.MultiheadAttention(6, 2, kdim=4, vdim=5, batch_first=True), head=nn.Linear(6, 3),
    )  # fmt: skip
    batch = {"x": vectors(5, 3, 6), "k": vectors(5, 7, 4, seed=1), "v": vectors(5, 7, 5, seed=2), "y": integers(3, 5)}
    return Problem(model, losses, (Call(batch),))


@case("property")
def module_with_bias_of_keys() -> Problem:
    """add_bias_kv: a learned key and value, repeated for every example."""
    return classified(attended(nn.MultiheadAttention(6, 2, batch_first=True, add_bias_kv=True)), vectors(5, 4, 6))


@case("property")
def module_with_padding() -> Problem:
    """key_padding_mask from the batch: examples of other lengths."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"], batch["padding"]), batch["y"], reduction="none")

    model = Net(
        lambda m, x, padding: m.head(m.attention(x, x, x, key_padding_mask=padding)[0][:, 0]),
        attention=nn.MultiheadAttention(6, 2, batch_first=True), head=nn.Linear(6, 3),
    )  # fmt: skip
    padding = torch.arange(4)[None] >= torch.tensor([4, 1, 3, 2, 4])[:, None]
    return Problem(model, losses, (Call({"x": vectors(5, 4, 6), "padding": padding, "y": integers(3, 5)}),))


@case("property")
def encoder_layer() -> Problem:
    """nn.TransformerEncoderLayer, with dropout 0 and in training mode."""
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    return classified(Net(lambda m, x: m.head(m.layer(x).mean(1)), layer=layer, head=nn.Linear(6, 3)), vectors(5, 4, 6))


@case("property")
def encoder_in_eval() -> Problem:
    """nn.TransformerEncoder in eval mode, where a fused path waits behind it for calls without gradients."""
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model = Net(lambda m, x: m.head(m.encoder(x).mean(1)), encoder=encoder, head=nn.Linear(6, 3))
    return classified(model.eval(), vectors(5, 4, 6))


@case("opacus issue 578")
def decoder_layer() -> Problem:
    """nn.TransformerDecoderLayer: attention to itself and to a memory, with other numbers of positions."""
    layer = nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    model = Net(lambda m, x: m.head(m.layer(x[:, :3], x[:, 3:]).mean(1)), layer=layer, head=nn.Linear(6, 3))
    return classified(model, vectors(5, 7, 6))


@case("BEiT")
def fused_weight_with_some_bias() -> Problem:
    """One weight for queries, keys and values, whose bias is put together from two parameters and zeros."""

    def forward(m: Any, x: Tensor) -> Tensor:
        bias = torch.cat([m.q, torch.zeros_like(m.v), m.v])
        q, k, v = (split(part, 2) for part in F.linear(x, m.w, bias).chunk(3, 2))
        logits: Tensor = m.head(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).mean(1))
        return logits

    parts = {"w": torch.randn(18, 6), "q": torch.randn(6), "v": torch.randn(6)}
    return classified(Net(forward, **parts, head=nn.Linear(6, 3)), vectors(5, 4, 6))


@case("grouped queries: Ainslie et al. 2023, 2305.13245")
def grouped_queries() -> Problem:
    """Two heads of queries for one of keys and values, which is repeated, and a causal mask."""

    def forward(m: Any, x: Tensor) -> Tensor:
        q, k, v = split(m.q(x), 4), split(m.k(x), 2), split(m.v(x), 2)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        logits: Tensor = m.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2).mean(1))
        return logits

    parts = {
        "q": nn.Linear(6, 8, False),
        "k": nn.Linear(6, 4, False),
        "v": nn.Linear(6, 4, False),
        "o": nn.Linear(8, 3),
    }
    return classified(Net(forward, **parts), vectors(5, 4, 6))


@case("LLaMA: Touvron et al. 2023, 2302.13971")
def gated() -> Problem:
    """A gated MLP (SwiGLU) and rotated queries and keys: two layers read one input."""

    def forward(m: Any, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.1])
        cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        q, k = (h * cos + torch.cat([-h[..., 2:], h[..., :2]], -1) * sin for h in (m.q(x), m.k(x)))
        x = x + F.scaled_dot_product_attention(q, k, m.v(x), is_causal=True)
        logits: Tensor = m.down(F.silu(m.gate(x)) * m.up(x)).mean(1)
        return logits

    parts: dict[str, nn.Module] = {name: nn.Linear(4, 4, False) for name in "qkv"}
    parts |= {"gate": nn.Linear(4, 6, False), "up": nn.Linear(4, 6, False), "down": nn.Linear(6, 3, False)}
    return classified(Net(forward, **parts), vectors(5, 5, 4))


@case("property", refused="mixes examples: the softmax runs over the batch axis")
def softmax_over_the_batch() -> Problem:
    """The softmax of the scores over axis 0 by mistake, where examples lie."""
    model = Net(
        lambda m, x: m.head(((m.q(x) @ m.k(x).mT).softmax(0) @ x).mean(1)),
        q=nn.Linear(6, 4), k=nn.Linear(6, 4), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property", refused="mixes examples: positions of the batch attend to each other")
def batch_first_by_mistake() -> Problem:
    """A batch-first input into a sequence-first attention: examples attend to each other, and all shapes fit."""
    attention = nn.MultiheadAttention(6, 2)
    model = Net(lambda m, x: m.head(m.attention(x, x, x)[0].mean(1)), attention=attention, head=nn.Linear(6, 3))
    return classified(model, vectors(5, 4, 6))
