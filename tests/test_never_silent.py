"""Ways to change a model, a weight or a batch behind the tape's back: the result is right, or refused by name."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import prepare
from dpbench.losses import cross_entropy
from dpbench.numerics import factors
from dpbench.reference import per_example
from tests.zoo import L, Net

IMPLEMENTATIONS = ["bk", "bk_mixopt", "opacus", "opacus_improved", "fastgradclip", "ghostclip"]


def squares(model, batch):
    out = model(batch["x"])
    return out.flatten(1).square().sum(1)


def doubled(net):
    return net.double()


def batch_of(*shape, seed=0):
    return {"x": torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))}


def right(out, model, losses, batch, clip):
    """Against the loop on a copy, so that nothing that the step did is seen by it."""
    return zoo.error(out, per_example(copy.deepcopy(model), losses, batch, clip)) < 1e-10


def is_right_or_refused(name, net, losses, batches, message=""):
    clip = Clip(0.7)
    step = prepare(name, net, losses, clip)
    refused, reasons = 0, []
    for batch in batches:
        try:
            out = step(batch)
        except Refused as error:
            refused += 1
            reasons.append(str(error))
        else:
            assert right(out, net, losses, batch, clip)
    assert all(message in reason for reason in reasons)
    return refused


def addmm_(n, x):
    h = n.l(x)
    h.addmm_(x, n.w)
    return h


def copy_(n, x):
    h = n.l(x)
    h[:, 0].copy_(n.c)
    return h


def masked_fill_(n, x):
    h = n.l(x)
    h.masked_fill_(x > 0, n.s)
    return h


def clamp_(n, x):
    h = n.l(x)
    h.clamp_(max=n.s)
    return h


def parts():
    torch.manual_seed(0)
    return {"l": L(4, 4), "w": torch.randn(4, 4), "c": torch.randn(()), "s": torch.randn(())}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("forward", [addmm_, copy_, masked_fill_, clamp_])
def test_in_place_calls_whose_result_is_ignored(forward, name):
    refused = is_right_or_refused(name, doubled(Net(forward, **parts())), squares, [batch_of(5, 4)], "in place")
    assert refused


def zeroed(n, x):
    w = n.w.clone()
    w[0] = 0
    return nn.functional.linear(x, w)


def scaled_row(n, x):
    w = n.w.clone()
    w[0].mul_(3)
    return nn.functional.linear(x, w)


def scaled_whole(n, x):
    w = n.w * 1.0
    w.mul_(3)
    return nn.functional.linear(x, w)


def scaled_after(n, x):
    w = n.w * 1.0
    h = nn.functional.linear(x, w)
    w.mul_(3.0)
    return h


def moved_and_scaled_after(n, x):
    w = n.w.t()
    w = w.clone()
    h = x @ w
    w.mul_(3.0)
    return h


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("forward", [zeroed, scaled_row, scaled_whole, scaled_after, moved_and_scaled_after])
def test_weights_changed_in_place(forward, name):
    is_right_or_refused(name, doubled(Net(forward, **parts())), squares, [batch_of(5, 4)], "changed in place")


SHAPES = {
    "folded": (
        lambda: Net(lambda n, x: n.l(x.reshape(-1, 4)).view(x.shape[0], -1), l=L(4, 4)),
        [(5, 1, 4), (5, 3, 4), (5, 2, 4), (4, 3, 4), (5, 1, 4)],
    ),
    "folded, two first": (
        lambda: Net(lambda n, x: n.l(x.reshape(-1, 4)).view(x.shape[0], -1), l=L(4, 4)),
        [(5, 2, 4), (5, 3, 4), (6, 1, 4)],
    ),
    "sequence first, folded": (
        lambda: Net(
            lambda n, x: (n.l(x.transpose(0, 1).reshape(-1, 4)) * n.c).view(x.shape[1], x.shape[0], -1).transpose(0, 1),
            l=L(4, 4),
            c=torch.randn(4),
        ),
        [(5, 2, 4), (5, 3, 4), (3, 5, 4), (5, 1, 4)],
    ),
    "another axis": (
        lambda: Net(lambda n, x: (n.l(x) * n.c).tanh(), l=L(4, 4), c=torch.randn(4)),
        [(5, 4), (5, 5, 4), (5, 4), (5, 3, 4), (3, 3, 4)],
    ),
    "another axis, a table": (
        lambda: Net(
            lambda n, x: n.l(x) + n.c[: x.shape[-2]] if x.ndim == 3 else n.l(x), l=L(4, 4), c=torch.randn(6, 4)
        ),
        [(5, 4), (5, 5, 4), (5, 3, 4)],
    ),
}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("case", SHAPES)
def test_batches_of_other_shapes_are_planned_anew(case, name):
    build, shapes = SHAPES[case]
    torch.manual_seed(0)
    batches = [batch_of(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert is_right_or_refused(name, doubled(build()), squares, batches) == 0


def per_class(model, batch):
    losses = cross_entropy(model(batch["x"]), batch["y"])
    return losses / torch.bincount(batch["y"], minlength=3)[batch["y"]]


def over_the_batch(model, batch):
    losses = cross_entropy(model(batch["x"]), batch["y"])
    return losses / len(losses)


def detached_mean(model, batch):
    out = model(batch["x"])
    return (out - out.mean(0).detach()).square().sum(1)


def detached_mean_of_ids(model, batch):
    out = model(batch["y"])
    return (out - out.mean(0).detach()).square().sum(1)


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
@pytest.mark.parametrize("losses", [per_class, over_the_batch, detached_mean, detached_mean_of_ids])
def test_examples_mixed_through_counts_labels_and_detached_statistics(losses, name):
    torch.manual_seed(0)
    net = nn.Embedding(3, 3) if losses is detached_mean_of_ids else L(6, 3)
    batch = zoo.batch_of(5, 6)
    batch["y"] = torch.tensor([0, 1, 2, 0, 1])
    with pytest.raises(Refused, match="examples are mixed"):
        prepare(name, net, losses, Clip())(batch)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_layer_replaced_after_the_step_was_prepared(name):
    net = doubled(Net(lambda n, x: n.l(x), l=L(4, 4)))
    step = prepare(name, net, squares, Clip())
    step(batch_of(5, 4))
    net.l = L(4, 4).double()
    with pytest.raises(DpbenchError, match="Prepare the step again"):
        step(batch_of(5, 4))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_parameter_unfrozen_after_the_step_was_prepared(name):
    net = doubled(nn.Sequential(L(4, 4), L(4, 4)))
    net[0].requires_grad_(False)
    step = prepare(name, net, squares, Clip())
    step(batch_of(5, 4))
    net[0].requires_grad_(True)
    with pytest.raises(DpbenchError, match="Prepare the step again"):
        step(batch_of(5, 4))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_parameters_in_a_list_given_by_keyword(name):
    net = Net(lambda n, x: n.l(x) * torch.cat(tensors=[n.c, n.c], dim=0), l=L(4, 4), c=torch.randn(2))
    assert is_right_or_refused(name, doubled(net), squares, [batch_of(5, 4)]) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_factors_are_never_rounded_up(dtype):
    c = torch.rand(100_000)
    low = factors(c, dtype)
    assert low.dtype == dtype
    assert (low.float() <= c).all()
    assert ((c - low.float()) / c).median() < torch.finfo(dtype).eps
    assert torch.equal(factors(torch.ones(1), dtype).float(), torch.ones(1))


@pytest.mark.parametrize("name", ["bk", "nonprivate", "vmap", "tf_privacy"])
def test_a_mask_of_integers_is_refused(name):
    step = prepare(name, L(6, 3), zoo.cross_entropy, Clip())
    with pytest.raises(DpbenchError, match=r"mask has dtype torch.int64; expected truth values"):
        step(zoo.batch_of(5, 6), mask=torch.tensor([1, 1, 0, 1, 1]))


def test_the_probe_puts_back_a_buffer_that_was_reassigned():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = L(6, 3)
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x):
            self.n = self.n + 1
            return self.l(x)

    net = Counting()
    prepare("bk", net, zoo.cross_entropy, Clip())(zoo.batch_of(5, 6))
    assert net.n.item() == 1
