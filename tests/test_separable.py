"""An example has the loss and the gradient that it has alone, and the backward is linear; or it is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.preparation import prepare
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.zoo import L, Net


def weighted_by_the_first(n, x):
    return n.l(x) * (x[0] > 0).to(x)


def longest_of_the_batch(n, x):
    lengths = (x > 0).sum(1)
    return n.l(x) / lengths.max()


def largest_activation(n, x):
    h = n.l(x)
    return h / h.detach().abs().max()


@pytest.mark.parametrize("forward", [weighted_by_the_first, longest_of_the_batch, largest_activation])
def test_an_example_that_is_another_alone_is_mixed(forward):
    torch.manual_seed(0)
    batch = batch_of(5, 4)
    batch["x"][:3] = torch.tensor([[1.0, -2, 3, 4], [1, 1, 1, 1], [-1, -1, -1, 2]], dtype=torch.float64)
    assert refusals("bk", Net(forward, l=L(4, 4)), squares, [batch], "examples are mixed")


class Normalised(torch.autograd.Function):
    """Leaves values alone, and normalises the gradient of the whole batch."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g / g.norm()


def hooked(change):
    def forward(n, x):
        h = n.l(x)
        h.register_hook(change)
        return n.o(h)

    return forward


NONLINEAR = {
    "norm": hooked(lambda g: g / (g.norm() + 1)),
    "clamp": hooked(lambda g: g.clamp(-0.1, 0.1)),
    "custom": lambda n, x: n.o(Normalised.apply(n.l(x))),
}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("case", NONLINEAR)
def test_a_backward_that_is_not_linear_is_refused(case, name):
    torch.manual_seed(0)
    net = Net(NONLINEAR[case], l=L(4, 4), o=L(4, 3))
    assert refusals(name, net, squares, [batch_of(5, 4)], "not linear in the losses")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_linear_hook_is_part_of_the_function(name):
    net = Net(hooked(lambda g: g * -0.5), l=L(4, 4), o=L(4, 3))
    assert refusals(name, net, squares, [batch_of(5, 4)]) == 0


def test_a_gradient_divided_by_the_batch_size_is_refused():
    net = Net(hooked(lambda g: g / len(g)), l=L(4, 4), o=L(4, 3))
    assert refusals(
        "bk", net, squares, [batch_of(5, 4)], "the gradient of example 0 is another in the batch than alone"
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_hook_on_a_parameter_is_refused(when):
    net = L(4, 4)
    step = prepare("bk", net, squares, Clip()) if when == "after" else None
    if step:
        step({"x": torch.randn(5, 4)})
    net.weight.register_hook(lambda g: g.clamp(-1, 1))
    with pytest.raises(Refused, match="parameter weight has a hook"):
        (step or prepare("bk", net, squares, Clip()))({"x": torch.randn(5, 4)})


def test_random_examples_are_compared_without_their_dropout():
    net = nn.Sequential(L(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Dropout1d(0.1), L(8, 3))
    out = prepare("bk", net, squares, Clip())({"x": torch.randn(5, 4)})
    assert out.norms.shape == (5,), "and not refused"


def test_mixing_is_found_behind_dropout():
    net = Net(lambda n, x: largest_activation(n, F.dropout(x)), l=L(4, 4))
    with pytest.raises(Refused, match="examples are mixed"):
        prepare("bk", net, squares, Clip())({"x": torch.randn(5, 4)})


def test_a_random_forward_of_its_own_leaves_the_random_state_alone():
    net = Net(lambda n, x: n.l(x + torch.randn_like(x)), l=L(4, 4))
    step = prepare("bk", net, squares, Clip())
    torch.manual_seed(0)
    step({"x": torch.ones(5, 4)})
    here = torch.get_rng_state()
    torch.manual_seed(0)
    torch.randn(5, 4)
    assert torch.equal(here, torch.get_rng_state())


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_what_three_examples_do_not_show_the_whole_batch_does(name):
    """Examples that are alike, of which the probe takes one: a label that occurs three times in the batch alone."""

    def balanced(model, batch):
        y = batch["y"]
        common = (y[:, None] == y[None]).sum(1).clamp(min=2)
        return F.cross_entropy(model(batch["x"]), y, reduction="none") / common

    batch = batch_of(6, 6) | {"y": torch.tensor([0, 1, 2, 3, 0, 0])}
    batch["x"][4:] = batch["x"][0]
    torch.manual_seed(0)
    assert refusals(name, nn.Sequential(L(6, 5), nn.Tanh(), L(5, 4)), balanced, [batch], "in the batch of 6") == 1


def test_a_gradient_that_is_not_finite_is_named_as_that():
    batch = batch_of(5, 4)
    batch["x"][2, 0] = float("inf")
    with pytest.raises(DpbenchError, match="the gradient of an example is not finite"):
        prepare("bk", nn.Sequential(L(4, 3), nn.Tanh()).double(), squares)(batch)
