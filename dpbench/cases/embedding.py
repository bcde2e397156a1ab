"""Embeddings and other tables that are read by number."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, integers


def positioned(position: nn.Module, which: str) -> nn.Module:
    """Tokens with a position added to each, whose numbers have one of three shapes."""

    def forward(m: Any, ids: torch.Tensor) -> torch.Tensor:
        numbers = {"T": m.numbers[: ids.shape[1]], "1T": m.numbers[None, : ids.shape[1]]}
        numbers["BT"] = numbers["1T"].expand(len(ids), -1)
        logits: torch.Tensor = m.head((m.token(ids) + m.position(numbers[which])).tanh().mean(1))
        return logits

    model = Net(forward, token=nn.Embedding(9, 5), position=position, head=nn.Linear(5, 3))
    model.register_buffer("numbers", torch.arange(7))
    return model


@case("property")
def one_id() -> Problem:
    """One id for each example, (B,), some of them the same."""
    return classified(nn.Sequential(nn.Embedding(4, 5), nn.Tanh(), nn.Linear(5, 3)), integers(4, 5))


@case("property")
def sequence() -> Problem:
    """Ids (B, T): what arrives at one row is summed over the example before the norm."""
    model = Net(lambda m, x: m.head(m.e(x).tanh().mean(1)), e=nn.Embedding(9, 5), head=nn.Linear(5, 3))
    return classified(model, integers(9, 5, 4))


@case("property")
def repeated() -> Problem:
    """One id all over an example, or two in turns: a norm without the cross terms is far too small."""
    x = integers(9, 5, 6)
    x[0] = 3
    x[1] = torch.tensor([2, 5, 2, 5, 2, 5])
    model = Net(lambda m, x: m.head(m.e(x).mean(1)), e=nn.Embedding(9, 5), head=nn.Linear(5, 3))
    return classified(model, x)


@case("property")
def three_axes() -> Problem:
    """Ids (B, T, words): two axes belong to an example."""
    model = Net(lambda m, x: m.head(m.e(x).tanh().mean((1, 2))), e=nn.Embedding(9, 5), head=nn.Linear(5, 3))
    return classified(model, integers(9, 5, 3, 2))


@case("pytorch issue 26302")
def padding() -> Problem:
    """padding_idx occurs in the batch, and its row has no gradient."""
    x = integers(9, 5, 4)
    x[:, 3] = 1
    x[2, 1:] = 1
    model = Net(lambda m, x: m.head(m.e(x).tanh().mean(1)), e=nn.Embedding(9, 5, padding_idx=1), head=nn.Linear(5, 3))
    return classified(model, x)


@case("property")
def padding_from_the_end() -> Problem:
    """padding_idx=-1 is the last row."""
    x = integers(9, 5, 4)
    x[:, 3] = 8
    model = Net(lambda m, x: m.head(F.embedding(x, m.w, -1).tanh().mean(1)), w=torch.randn(9, 5), head=nn.Linear(5, 3))
    return classified(model, x)


@case("opacus pull request 519")
def bag_sum() -> Problem:
    """EmbeddingBag sums the rows of each example itself."""
    return classified(nn.Sequential(nn.EmbeddingBag(9, 5, mode="sum"), nn.Linear(5, 3)), integers(9, 5, 4))


@case("opacus pull request 519")
def bag_mean() -> Problem:
    """EmbeddingBag divides by the number of rows that count, which padding_idx changes."""
    x = integers(9, 5, 4)
    x[0, 1:] = 2
    x[3, 3] = 2
    return classified(nn.Sequential(nn.EmbeddingBag(9, 5, mode="mean", padding_idx=2), nn.Linear(5, 3)), x)


@case("opacus issue 518")
def bag_max() -> Problem:
    """EmbeddingBag takes the largest: which row has the gradient differs by column."""
    return classified(nn.Sequential(nn.EmbeddingBag(9, 5, mode="max"), nn.Linear(5, 3)), integers(9, 5, 4))


@case("property")
def positions_alone() -> Problem:
    """Positions (T,): nothing of the batch is in the lookup, and every example reads the same rows."""
    return classified(positioned(nn.Embedding(7, 5), "T"), integers(9, 5, 4))


@case("opacus issue 841")
def positions_of_one() -> Problem:
    """Positions (1, T), as Transformers makes them: the lookup has a batch of one."""
    return classified(positioned(nn.Embedding(7, 5), "1T"), integers(9, 5, 4))


@case("property")
def positions_of_all() -> Problem:
    """Positions (B, T), the same row of numbers for each example."""
    return classified(positioned(nn.Embedding(7, 5), "BT"), integers(9, 5, 4))


@case("opacus issue 841")
def positions_of_one_example() -> Problem:
    """Positions (1, T) in a batch of one, where they look like the batch's, and then in one of five."""
    return classified(positioned(nn.Embedding(7, 5), "1T"), integers(9, 1, 4), integers(9, 5, 4), integers(9, 5, 6))


@case("RoBERTa")
def positions_from_ids() -> Problem:
    """Positions are counted over the tokens that are not padding, so that they differ between examples."""

    def forward(m: Any, ids: torch.Tensor) -> torch.Tensor:
        valid = ids.ne(1)
        x = m.token(ids) + m.position(valid.cumsum(1) * valid + 1)
        logits: torch.Tensor = m.head((m.norm(x) * valid[..., None]).sum(1) / valid.sum(1, keepdim=True))
        return logits

    x = integers(9, 5, 4)
    x[1, 2:] = 1
    parts = {"token": nn.Embedding(9, 5, padding_idx=1), "position": nn.Embedding(7, 5, padding_idx=1)}
    return classified(Net(forward, **parts, norm=nn.LayerNorm(5), head=nn.Linear(5, 3)), x)


@case("BERT")
def segments() -> Problem:
    """All tokens are of segment 0: one row of a small table has the sum over all positions."""
    model = Net(
        lambda m, x: m.head((m.token(x) + m.segment(torch.zeros_like(x))).tanh().mean(1)),
        token=nn.Embedding(9, 5), segment=nn.Embedding(2, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, integers(9, 5, 4))


@case("property", refused="the forward rescales the rows that the batch reads: weights change with the data, unnoised")
def max_norm() -> Problem:
    """max_norm rewrites, in place and without noise, the rows of ids that occur: no clipping bounds that."""
    model = Net(lambda m, x: m.head(m.e(x).tanh().mean(1)), e=nn.Embedding(9, 5, max_norm=0.5), head=nn.Linear(5, 3))
    return classified(model, integers(9, 5, 4))


@case("property", refused="mixes examples: a gradient is divided by how often its id occurs in the whole batch")
def by_frequency() -> Problem:
    """scale_grad_by_freq mixes examples in the backward alone: all losses are the examples' own."""
    model = Net(
        lambda m, x: m.head(m.e(x).tanh().mean(1)), e=nn.Embedding(4, 5, scale_grad_by_freq=True), head=nn.Linear(5, 3)
    )
    return classified(model, integers(4, 5, 4))


@case("pytorch pull request 3842")
def sparse() -> Problem:
    """sparse=True makes the gradient a sparse tensor, with padding_idx in it."""
    x = integers(9, 5, 4)
    x[:, 3] = 1
    model = Net(
        lambda m, x: m.head(m.e(x).tanh().mean(1)),
        e=nn.Embedding(9, 5, padding_idx=1, sparse=True), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, x)


@case("property")
def by_index() -> Problem:
    """A table read by indexing, negative numbers too, is no call of embedding."""
    model = Net(lambda m, x: m.head(m.t[x - 4].tanh().mean(1)), t=torch.randn(9, 5), head=nn.Linear(5, 3))
    return classified(model, integers(9, 5, 4))


@case("property")
def one_hot() -> Problem:
    """A lookup written as a product with one-hot rows."""
    model = Net(
        lambda m, x: m.head((F.one_hot(x, 9).to(m.t.dtype) @ m.t).tanh().mean(1)),
        t=torch.randn(9, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, integers(9, 5, 4))


@case("property")
def by_index_select() -> Problem:
    """index_select on ids that were flattened over batch and positions."""
    model = Net(
        lambda m, x: m.head(m.t.index_select(0, x.flatten()).view(*x.shape, 5).tanh().mean(1)),
        t=torch.randn(9, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, integers(9, 5, 4))
