"""Parameters that come with attention: class tokens, positions, windows, prompts, learned queries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.attention import split
from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, vectors


@case("opacus issue 239")
def class_token_and_positions() -> Problem:
    """The bare parameters of ViT: a class token expanded over the batch, positions added to all."""
    model = Net(
        lambda m, x: m.head(m.block(torch.cat([m.cls.expand(len(x), -1, -1), x], 1) + m.position)[:, 0]),
        cls=torch.randn(1, 1, 6), position=torch.randn(1, 5, 6), head=nn.Linear(6, 3),
        block=nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("ViT")
def class_token_repeated() -> Problem:
    """The class token by repeat, and positions without a batch axis."""
    model = Net(
        lambda m, x: m.head((torch.cat([m.cls.repeat(len(x), 1, 1), m.a(x)], 1) + m.position).tanh().mean(1)),
        cls=torch.randn(1, 1, 5), position=torch.randn(5, 5), a=nn.Linear(6, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("T5")
def relative_positions() -> Problem:
    """A table of biases by distance, looked up once and added to the scores of every example."""

    def forward(m: Any, x: Tensor) -> Tensor:
        q, k, v = (split(part, 2) for part in m.qkv(x).chunk(3, 2))
        places = torch.arange(x.shape[1])
        bias = m.table(places[None] - places[:, None] + 4).permute(2, 0, 1)[None]
        weights = (q @ k.mT + bias).softmax(-1)
        logits: Tensor = m.head((weights @ v).transpose(1, 2).flatten(2).mean(1))
        return logits

    parts = {"qkv": nn.Linear(6, 18, False), "table": nn.Embedding(9, 2), "head": nn.Linear(6, 3)}
    return classified(Net(forward, **parts), vectors(5, 4, 6))


@case("Swin: Liu et al. 2021, 2103.14030")
def windows() -> Problem:
    """Windows folded into the batch axis, (B windows, n, d), and a bias table read by index for each."""

    def forward(m: Any, x: Tensor) -> Tensor:
        B = len(x)
        x = x.view(B, 3, 2, 6).flatten(0, 1)
        q, k, v = (split(part, 2) for part in m.qkv(x).chunk(3, 2))
        bias = m.table[torch.tensor([[1, 2], [0, 1]])].permute(2, 0, 1)
        out = (q @ k.mT + bias).softmax(-1) @ v
        logits: Tensor = m.head(m.norm(out.transpose(1, 2).flatten(2)).view(B, 6, 6).tanh().mean(1))
        return logits

    parts = {"qkv": nn.Linear(6, 18), "table": torch.randn(3, 2), "norm": nn.LayerNorm(6), "head": nn.Linear(6, 3)}
    return classified(Net(forward, **parts), vectors(5, 6, 6))


@case("Swin: Liu et al. 2021, 2103.14030")
def windows_across() -> Problem:
    """Windows of every second position: rows of an example lie apart after the fold."""

    def forward(m: Any, x: Tensor) -> Tensor:
        B = len(x)
        rows = m.a(x.view(B, 3, 2, 6).permute(2, 0, 1, 3).reshape(2 * B, 3, 6))
        out = (rows @ rows.mT).softmax(-1) @ m.b(rows)
        logits: Tensor = m.head(out.view(2, B, 3, 5).mean((0, 2)))
        return logits

    return classified(Net(forward, a=nn.Linear(6, 4), b=nn.Linear(4, 5), head=nn.Linear(5, 3)), vectors(5, 6, 6))


@case("prompt tuning: Lester et al. 2021, 2104.08691")
def prompts() -> Problem:
    """Prompt tokens before the input, other lengths of input in other batches."""
    model = Net(
        lambda m, x: m.head(m.block(torch.cat([m.prompt.expand(len(x), 2, 6), x], 1)).mean(1)),
        prompt=torch.randn(2, 6), head=nn.Linear(6, 3),
        block=nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6), vectors(5, 2, 6, seed=1))


@case("prefix tuning: Li and Liang 2021, 2101.00190")
def prefixes() -> Problem:
    """Learned keys and values before those of the input."""

    def forward(m: Any, x: Tensor) -> Tensor:
        q, k, v = (split(part, 2) for part in m.qkv(x).chunk(3, 2))
        k, v = (torch.cat([p.expand(len(x), -1, -1, -1), own], 2) for p, own in ((m.k, k), (m.v, v)))
        logits: Tensor = m.head(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).mean(1))
        return logits

    parts = {"qkv": nn.Linear(6, 18), "k": torch.randn(2, 3, 3), "v": torch.randn(2, 3, 3), "head": nn.Linear(6, 3)}
    return classified(Net(forward, **parts), vectors(5, 4, 6))


@case("DETR: Carion et al. 2020, 2005.12872")
def learned_queries() -> Problem:
    """Queries that are parameters meet the batch in the attention itself."""
    model = Net(
        lambda m, x: m.head(m.attention(m.queries.expand(len(x), -1, -1), x, x)[0].flatten(1)),
        attention=nn.MultiheadAttention(6, 2, batch_first=True), queries=torch.randn(2, 6), head=nn.Linear(12, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))
