"""Losses that mix examples, so that no example has a gradient of its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.losses import mlp, tagged, tagger, tokens
from dpbench.cases.problem import Call, Problem, integers, vectors


@case("property", refused="mixes examples: the sum is divided by the number of tokens in the whole batch")
def mean_over_all_tokens() -> Problem:
    """A mean over the batch's tokens: how long the others are scales an example's gradient."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return tokens(model, batch).sum(1) / (batch["y"] != -100).sum() * len(batch["y"])

    return Problem(tagger(), losses, (Call(tagged()),))


@case("SimCLR: Chen et al. 2020, 2002.05709", refused="mixes examples: the others are the negatives of each")
def contrastive() -> Problem:
    """A contrastive loss, in which the other examples of the batch are the negatives."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        a, b = F.normalize(model(batch["a"])), F.normalize(model(batch["b"]))
        return F.cross_entropy(a @ b.mT, torch.arange(len(a)), reduction="none")

    return Problem(mlp(3), losses, (Call({"a": vectors(5, 6), "b": vectors(5, 6, seed=1)}),))


@case("property", refused="mixes examples: losses are weighted by how common their class is in the batch")
def balanced() -> Problem:
    """Losses divided by how often their class occurs in the batch."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        y = batch["y"]
        return F.cross_entropy(model(batch["x"]), y, reduction="none") / (y[:, None] == y[None]).sum(1)

    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": torch.tensor([0, 0, 1, 2, 0])}),))


@case("property", refused="mixes examples: a detached mean over the batch scales each loss")
def detached_baseline() -> Problem:
    """The mean of the batch's losses as a baseline, detached: it moves gradients all the same."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        each = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
        return each * (each.detach() - each.detach().mean())

    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))
