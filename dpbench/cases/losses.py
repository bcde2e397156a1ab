"""Losses: what one example's loss is, and when it is not its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, integers, vectors

LENGTHS = torch.tensor([6, 1, 3, 2, 6])
"""Of the five examples."""


def tagger() -> nn.Module:
    """A class for each of the tokens of an example, (B, T, 4) from ids (B, T)."""
    return nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 4))


def tagged(lengths: Tensor = LENGTHS) -> dict[str, Tensor]:
    """Ids and labels (B, 6), of which those past an example's length are ignored."""
    valid = torch.arange(6)[None] < lengths[:, None]
    y = integers(4, 5, 6, seed=1).masked_fill(~valid, -100)
    return {"x": integers(9, 5, 6), "y": y, "valid": valid, "length": lengths}


def tokens(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The cross entropy of each token, (B, T), zero where it does not count."""
    return F.cross_entropy(model(batch["x"]).transpose(1, 2), batch["y"], reduction="none", ignore_index=-100)


def mean_over_own(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The mean over each example's own tokens."""
    return tokens(model, batch).sum(1) / (batch["y"] != -100).sum(1).clamp(min=1)


def mlp(out: int) -> nn.Module:
    """Two layers on vectors of six."""
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, out))


@case("property")
def ignored_tokens() -> Problem:
    """ignore_index, with one valid token in one example and six in another: each mean is over its own."""
    return Problem(tagger(), mean_over_own, (Call(tagged()),))


@case("property")
def no_valid_token() -> Problem:
    """An example all of whose tokens are ignored: loss and gradient are zero, and not 0 / 0."""
    return Problem(tagger(), mean_over_own, (Call(tagged(torch.tensor([6, 0, 3, 2, 5]))),))


@case("property")
def padding_mask() -> Problem:
    """A mask from the batch times the losses of the tokens."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        y = batch["y"].clamp(min=0)
        each = F.cross_entropy(model(batch["x"]).transpose(1, 2), y, reduction="none")
        return (each * batch["valid"]).sum(1) / batch["length"]

    return Problem(tagger(), losses, (Call(tagged()),))


@case("property")
def summed_over_time() -> Problem:
    """A sum over tokens, so that long examples have far larger gradients."""
    return Problem(tagger(), lambda model, batch: tokens(model, batch).sum(1), (Call(tagged()),))


@case("property")
def folded_tokens() -> Problem:
    """The loss on (B T, V) and back, as language models compute it."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits, y = model(batch["x"]), batch["y"]
        each = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none", ignore_index=-100)
        return each.view_as(y).sum(1) / batch["length"]

    return Problem(tagger(), losses, (Call(tagged()),))


@case("property")
def last_token() -> Problem:
    """The last valid token of each example is gathered by its length."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        last = batch["length"] - 1
        logits = model(batch["x"])[torch.arange(len(last)), last]
        return F.cross_entropy(logits, batch["y"][:, 0], reduction="none")

    return Problem(tagger(), losses, (Call(tagged()),))


@case("property")
def mean_squared_error() -> Problem:
    """A regression with several targets."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.mse_loss(model(batch["x"]), batch["y"], reduction="none").mean(1)

    return Problem(mlp(2), losses, (Call({"x": vectors(5, 6), "y": vectors(5, 2, seed=1)}),))


@case("property")
def binary() -> Problem:
    """A binary cross entropy over many labels, with weights for positive ones."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        weight = torch.tensor([1.0, 2.0, 0.5]).to(batch["x"])
        out = F.binary_cross_entropy_with_logits(model(batch["x"]), batch["y"], pos_weight=weight, reduction="none")
        return out.sum(1)

    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": integers(2, 5, 3).float()}),))


@case("property")
def label_smoothing() -> Problem:
    """Smoothed labels and class weights, unnormalised."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        weight = torch.tensor([1.0, 2.0, 0.5]).to(batch["x"])
        return F.cross_entropy(model(batch["x"]), batch["y"], weight, reduction="none", label_smoothing=0.1)

    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("distillation: Hinton et al. 2015, 1503.02531")
def divergence() -> Problem:
    """The divergence from a teacher's distribution, which is computed without gradients by a frozen model."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            target = model.get_submodule("teacher")(batch["x"]).log_softmax(1)
        own = model.get_submodule("student")(batch["x"]).log_softmax(1)
        return F.kl_div(own, target, log_target=True, reduction="none").sum(1)

    model = Net(lambda m, x: m.student(x), teacher=mlp(3).requires_grad_(False), student=mlp(3))
    return Problem(model, losses, (Call({"x": vectors(5, 6)}),))


@case("CTC: Graves et al. 2006")
def ctc() -> Problem:
    """Connectionist temporal classification: time first, and lengths of inputs and targets."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits = model(batch["x"]).log_softmax(2).transpose(0, 1)
        return F.ctc_loss(logits, batch["y"], batch["length"], batch["size"], reduction="none")

    batch = {"x": integers(9, 5, 6), "y": integers(3, 5, 2) + 1, "length": torch.tensor([6, 5, 4, 6, 5])}
    return Problem(tagger(), losses, (Call(batch | {"size": torch.tensor([2, 1, 1, 2, 1])}),))


@case("property")
def tuple_of_outputs() -> Problem:
    """A model with two outputs, and a loss of both."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        a, b = model(batch["x"])
        own = F.cross_entropy(a, batch["y"], reduction="none")
        both: Tensor = own + b.square().sum(1)
        return both

    model = Net(
        lambda m, x: (m.a(h := m.body(x).tanh()), m.b(h)), body=nn.Linear(6, 5), a=nn.Linear(5, 3), b=nn.Linear(5, 2)
    )
    return Problem(model, losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("property")
def dict_of_outputs() -> Problem:
    """A model that gives a dict, one of whose outputs no loss reads."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"])["logits"], batch["y"], reduction="none")

    model = Net(
        lambda m, x: {"hidden": (h := m.body(x).tanh()), "logits": m.a(h), "other": m.b(h)},
        body=nn.Linear(6, 5), a=nn.Linear(5, 3), b=nn.Linear(5, 2),
    )  # fmt: skip
    return Problem(model, losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("GoogLeNet: Szegedy et al. 2014, 1409.4842")
def auxiliary() -> Problem:
    """A loss of an inner layer, weighted, and a penalty on its activations."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        inner, out = model(batch["x"])
        own, other = (F.cross_entropy(logits, batch["y"], reduction="none") for logits in (out, inner))
        all_of_them: Tensor = own + 0.3 * other + 0.01 * inner.abs().sum(1)
        return all_of_them

    model = Net(lambda m, x: (i := m.a(x), m.b(i.tanh())), a=nn.Linear(6, 3), b=nn.Linear(3, 3))
    return Problem(model, losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("property")
def weighted() -> Problem:
    """Each loss times a weight of its example in the batch, one of them zero and one negative."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return batch["weight"] * F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    weight = torch.tensor([1.0, 0.0, 10.0, -2.0, 0.1])
    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5), "weight": weight}),))


@case("property")
def with_a_penalty() -> Problem:
    """Weight decay inside every example's loss: a parameter is read where no example is."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        penalty = sum(p.square().sum() for p in model.parameters())
        return F.cross_entropy(model(batch["x"]), batch["y"], reduction="none") + 0.1 * penalty

    return Problem(mlp(3), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("property")
def triplet() -> Problem:
    """Anchor, positive and negative belong to one example."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        a, p, n = (model(batch[name]) for name in "apn")
        return F.triplet_margin_loss(a, p, n, margin=5.0, reduction="none")

    return Problem(mlp(3), losses, (Call({name: vectors(5, 6, seed=i) for i, name in enumerate("apn")}),))


@case("variational autoencoders: Kingma and Welling 2013, 1312.6114")
def variational() -> Problem:
    """Reconstruction and divergence, with noise that comes with the batch."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        mean, log = model.get_submodule("encoder")(batch["x"]).chunk(2, 1)
        out = model.get_submodule("decoder")(mean + batch["noise"] * (0.5 * log).exp())
        divergence: Tensor = 0.5 * (mean.square() + log.exp() - log - 1).sum(1)
        return F.mse_loss(out, batch["x"], reduction="none").sum(1) + divergence

    model = Net(lambda m, x: m.decoder(m.encoder(x)), encoder=mlp(4), decoder=nn.Linear(2, 6))
    return Problem(model, losses, (Call({"x": vectors(5, 6), "noise": vectors(5, 2, seed=1)}),))
