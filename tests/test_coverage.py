"""Counts of elements, by hand; and what the tape says of how it found norms."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench.clipping import Clip
from dpbench.coverage import Coverage, NormMethod, covered
from dpbench.errors import DpbenchError
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.registry import available
from dpbench.rows import Row
from tests.models.tiny import TINY

SIZES = {"token": 4, "weight": 20, "bias": 6}


def test_what_was_asked_is_trained_or_frozen_and_norms_are_counted_by_elements():
    found = covered(SIZES, {"weight", "bias", "another"}, {"weight": "ghost", "bias": NormMethod.VECTOR})
    assert found == Coverage(30, 26, {"token": 4}, {"ghost": 20, "vector": 6})
    assert (found.share, found.refused, found.by("ghost"), found.by("generic")) == (26 / 30, 0, 20 / 30, 0)


def test_what_is_neither_was_refused():
    refused = Coverage(30, 0)
    assert (refused.share, refused.refused, refused.by("ghost")) == (0, 30, None)


def test_a_norm_of_what_got_no_gradient_does_not_count():
    assert covered(SIZES, {"bias"}, {"weight": "ghost", "bias": "vector"}).norms == {"vector": 6}


def test_a_model_without_elements_is_covered():
    assert (Coverage(0, 0).share, Coverage(0, 0).by("ghost")) == (1, None)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"weight": "gost"}, "unknown norm method of weight 'gost'. Did you mean ghost"),
        ({"wait": "ghost"}, "unknown parameter in norm_methods 'wait'. Did you mean weight"),
    ],
)
def test_what_there_is_not_is_named(methods, message):
    with pytest.raises(DpbenchError, match=message):
        covered(SIZES, SIZES, methods)


def test_every_method_has_a_column():
    assert set(vars(Row)) >= set(NormMethod)


class Mixed(nn.Module):
    """One parameter for each way to a norm."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 4))
        self.hidden = nn.Linear(4, 4)
        self.scaled = nn.Parameter(torch.randn(4, 4))
        self.bilinear = nn.Bilinear(4, 4, 4, bias=False)
        self.head = nn.Linear(4, 9, bias=False)
        self.unused = nn.Parameter(torch.randn(3))
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        h = self.hidden(self.embedding(ids) + self.token)
        h = F.linear(h, self.scaled / self.scaled.norm())
        return self.head(self.bilinear(h, h.tanh()))


def losses(model, batch):
    return F.cross_entropy(model(batch["x"]).mT, batch["x"], reduction="none").sum(1)


WEIGHTS = ("embedding.weight", "hidden.weight")
VECTORS = {"token": "vector", "hidden.bias": "vector"}
SLOW = {"scaled": "instantiated", "bilinear.weight": "generic"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bk", {**dict.fromkeys(WEIGHTS, "ghost"), **VECTORS, **SLOW}),
        ("ghostclip", {**dict.fromkeys(WEIGHTS, "ghost"), **VECTORS, **SLOW}),
        ("opacus", {**dict.fromkeys(WEIGHTS, "instantiated"), **VECTORS, **SLOW}),
        # T = 5, twice for what is tied: 2 x 10^2 > 9 x 4 and 2 x 5^2 > 4 x 4.
        ("bk_mixopt", {**dict.fromkeys(WEIGHTS, "instantiated"), **VECTORS, **SLOW}),
        ("nonprivate", {}),
    ],
)
def test_a_step_says_how_it_found_the_norm_of_each_parameter(name, expected):
    torch.manual_seed(0)
    step = prepare(name, Mixed(), losses, Clip())
    assert step.norm_methods == {}
    for _ in range(2):
        step({"x": torch.randint(9, (3, 5))})
        assert step.norm_methods == expected


@pytest.mark.parametrize("name", [n for n in available() if n != "nonprivate"])
def test_every_private_implementation_says_it_of_every_parameter(name):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    step = prepare(name, model, lambda m, b: m(b["x"]).square().sum(1), Clip())
    step({"x": torch.randn(3, 4)})
    assert set(step.norm_methods) == {n for n, _ in model.named_parameters()}


@pytest.mark.parametrize("name", TINY)
def test_no_parameter_of_a_real_network_goes_through_the_generic_rule(name):
    task = build(TINY[name])
    step = prepare("bk", task.model, task.losses, Clip())
    step(task.batches(3, 0))
    sizes = {n: p.numel() for n, p in task.model.named_parameters() if p.requires_grad}
    found = covered(sizes, sizes, step.norm_methods)
    assert found.norms.get("generic", 0) == 0
    assert sum(found.norms.values()) == found.asked
