"""Linear layers, and other functions that multiply by a weight."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, vectors


@case("property")
def two_axes() -> Problem:
    """Vectors, (B, d), the plainest layer there is."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), vectors(5, 6))


@case("property")
def three_axes() -> Problem:
    """A sequence, (B, T, d): an example's gradient is a sum over T, whose norm has cross terms."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()), vectors(5, 4, 6))


@case("property")
def four_axes() -> Problem:
    """An image with channels last, (B, H, W, d): two axes are summed over."""
    model = Net(lambda m, x: m.b(m.a(x).tanh()).mean((1, 2)), a=nn.Linear(6, 5), b=nn.Linear(5, 3))
    return classified(model, vectors(5, 2, 3, 6))


@case("property")
def without_bias() -> Problem:
    """Layers without bias, in two and three axes."""
    model = Net(lambda m, x: m.b(m.a(x).tanh().mean(1)), a=nn.Linear(6, 5, False), b=nn.Linear(5, 3, False))
    return classified(model, vectors(5, 4, 6))


@case("property")
def first_without_bias() -> Problem:
    """No bias in the first layer, whose input needs no gradient: nothing but the weight asks for a backward there."""
    return classified(nn.Sequential(nn.Linear(6, 5, False), nn.Tanh(), nn.Linear(5, 3)), vectors(5, 6))


@case("property")
def one_example() -> Problem:
    """A batch of one example, in which a sum over the batch is the example's own gradient."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()), vectors(1, 4, 6))


@case("property")
def as_many_examples_as_positions() -> Problem:
    """B = T = d = p: whoever tells axes by their sizes cannot tell them here."""
    return classified(nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Flatten()), vectors(5, 5, 5))


@case("property")
def one_position() -> Problem:
    """T = 1: the axis is there, and there is nothing to sum over."""
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()), vectors(5, 1, 6))


@case("property")
def vectors_alone() -> Problem:
    """All parameters have one axis: a scale and a shift, and no matrix anywhere."""
    model = Net(lambda m, x: (x * m.scale + m.shift).tanh(), scale=torch.randn(6), shift=torch.randn(6))
    return classified(model, vectors(5, 6))


@case("property")
def scalar_parameter() -> Problem:
    """A parameter without axes, as a temperature is."""
    return classified(Net(lambda m, x: m.a(x) * m.t, a=nn.Linear(6, 3), t=torch.tensor(0.7)), vectors(5, 6))


@case("property")
def functional() -> Problem:
    """F.linear on a bare parameter: hooks on modules see none of it."""
    model = Net(
        lambda m, x: F.linear(F.linear(x, m.w, m.b).tanh(), m.v).mean(1),
        w=torch.randn(5, 6), b=torch.randn(5), v=torch.randn(3, 5),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("GPT-2")
def addmm_folded() -> Problem:
    """The Conv1D of GPT-2: addmm on rows (B T, d), in which the batch axis is gone."""
    model = Net(
        lambda m, x: m.head(torch.addmm(m.b, x.view(-1, 6), m.w).view(*x.shape[:2], 5).tanh().mean(1)),
        w=torch.randn(6, 5), b=torch.randn(5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def operator() -> Problem:
    """The product x @ w, and a weight on the left, w @ x."""
    model = Net(
        lambda m, x: m.head((m.left @ (x @ m.w)).tanh().mean(1)),
        w=torch.randn(6, 5), left=torch.randn(3, 4), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def matrix_vector() -> Problem:
    """A weight of one axis: x @ w takes the last axis away."""
    return classified(Net(lambda m, x: m.head(x @ m.w), w=torch.randn(6), head=nn.Linear(4, 3)), vectors(5, 4, 6))


@case("property")
def bilinear() -> Problem:
    """Two inputs of an example meet in one weight of three axes."""
    return classified(Net(lambda m, x: m.f(x, x.flip(1)), f=nn.Bilinear(6, 6, 3)), vectors(5, 6))


@case("property")
def einsum() -> Problem:
    """A weight of three axes by einsum, as attention heads are written."""
    model = Net(
        lambda m, x: m.head(torch.einsum("btd,dhk->bthk", x, m.w).tanh().flatten(2).mean(1)),
        w=torch.randn(6, 2, 3), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def batched_product() -> Problem:
    """One weight for each position: bmm with the positions where the batch usually is."""
    model = Net(
        lambda m, x: m.head(torch.bmm(x.transpose(0, 1), m.w).transpose(0, 1).tanh().mean(1)),
        w=torch.randn(4, 6, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def wide() -> Problem:
    """d = 64 and p = 2, then the other way round: the smaller side decides which norm is cheap."""
    model = nn.Sequential(nn.Linear(64, 2), nn.Tanh(), nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1), nn.Flatten())
    return classified(model, vectors(5, 4, 64))


@case("property")
def long() -> Problem:
    """T = 40 beside d = 3 and p = 2: a Gram over T is larger than the gradient itself."""
    return classified(nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(80, 3)), vectors(5, 40, 3))


@case("PReLU: He et al. 2015, 1502.01852")
def learned_slope() -> Problem:
    """PReLU reads its slopes by channel, on axis 1, wherever that is."""
    model = Net(
        lambda m, x: m.b(m.q(m.p(m.a(x)))).mean(1), a=nn.Linear(6, 5), p=nn.PReLU(4), q=nn.PReLU(), b=nn.Linear(5, 3)
    )
    return classified(model, vectors(5, 4, 6))
