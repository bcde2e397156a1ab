"""Ways to change a model, a weight or a batch behind the tape's back: the result is right, or refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.losses import cross_entropy
from dpbench.numerics import factors
from dpbench.preparation import prepare
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, right, squares
from tests.zoo import L, Net


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
    refused = refusals(name, Net(forward, **parts()), squares, [batch_of(5, 4)], "in place")
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
    refused = refusals(name, Net(forward, **parts()), squares, [batch_of(5, 4)], "changed in place")
    # Before the weight is used a change of all of it is one more function; a ghost norm needs no moved weight.
    followed = forward is scaled_whole or (forward is moved_and_scaled_after and name == "ghostclip")
    assert refused == (not followed)


def rows_of(model, batch):
    return model(batch["x"]).view(len(batch["x"]), -1).square().sum(1)


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
    "folded, then a bare parameter, one row at last": (
        lambda: Net(lambda n, x: (n.l(x.reshape(-1, 4)) * n.c).view(x.shape[0], -1), l=L(4, 4), c=torch.randn(4)),
        [(5, 3, 4), (1, 1, 4), (1, 3, 4), (2, 1, 4)],
    ),
    "repeated for every row": (
        lambda: Net(
            lambda n, x: x.reshape(-1, 4) * n.c.repeat(x.shape[0] * x.shape[1], 1) + n.l(x.reshape(-1, 4)),
            l=L(4, 4),
            c=torch.randn(1, 4),
        ),
        [(5, 1, 4), (5, 3, 4), (1, 1, 4), (3, 2, 4)],
    ),
    "expanded for every row": (
        lambda: Net(
            lambda n, x: n.c.expand(x.shape[0] * x.shape[1], -1).view(*x.shape) * n.l(x), l=L(4, 4), c=torch.randn(1, 4)
        ),
        [(5, 2, 4), (5, 3, 4), (1, 1, 4), (4, 1, 4)],
    ),
    "positions of one axis, then of the batch": (
        lambda: Net(
            lambda n, x: n.l(x) + n.c[torch.arange(x.shape[1]).expand(1 if x.shape[1] < 3 else x.shape[0], -1)],
            l=L(4, 4),
            c=torch.randn(6, 4),
        ),
        [(5, 2, 4), (5, 3, 4), (3, 3, 4), (2, 2, 4)],
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
    losses = rows_of if case == "repeated for every row" else squares
    assert refusals(name, build(), losses, batches) == 0


class Toggled(nn.Module):
    """Puts the other axis first when told to, which no shape gives away where B = T."""

    def __init__(self):
        super().__init__()
        self.l, self.c, self.first = L(4, 4), nn.Parameter(torch.randn(4)), False

    def forward(self, x):
        x = x.transpose(0, 1) if self.first else x
        h = (self.l(x.reshape(-1, 4)) * self.c).view(x.shape[0], x.shape[1], -1)
        return h.transpose(0, 1) if self.first else h


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_axes_put_elsewhere_between_steps_are_noticed(name):
    torch.manual_seed(0)
    net = Toggled().double()
    step = prepare(name, net, squares, Clip(0.7))
    for net.first in (False, True, True, False):
        batch = batch_of(4, 4, 4)
        assert right(step(batch), net, squares, batch, Clip(0.7))


def per_class(model, batch):
    losses = cross_entropy(model(batch["x"]), batch["y"])
    return losses / torch.bincount(batch["y"], minlength=3)[batch["y"]]


def per_class_by_pairs(model, batch):
    y = batch["y"]
    return cross_entropy(model(batch["x"]), y) / (y[:, None] == y[None]).sum(1)


def hardest(model, batch):
    """The five examples with the largest losses, which are all of three."""
    losses = squares(model, batch)
    last = losses.detach().topk(min(len(losses), 5)).values[-1]
    return torch.where(losses >= last, losses, torch.zeros_like(losses))


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
@pytest.mark.parametrize("seed", range(5))
def test_the_easiest_example_of_the_batch_is_not_dropped_unseen(seed, name):
    with pytest.raises(Refused, match="examples are mixed"):
        prepare(name, L(4, 3).double(), hardest, Clip())(batch_of(6, 4, seed=seed))


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
def test_weights_by_class_are_seen_where_the_three_examples_looked_at_are_of_three_classes(name):
    batch = {"x": torch.randn(5, 6, generator=torch.Generator().manual_seed(0)), "y": torch.tensor([0, 0, 1, 2, 0])}
    with pytest.raises(Refused, match="examples are mixed"):
        prepare(name, L(6, 3), per_class_by_pairs, Clip())(batch)


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
@pytest.mark.parametrize("losses", [per_class, per_class_by_pairs, over_the_batch, detached_mean, detached_mean_of_ids])
def test_examples_mixed_through_counts_labels_and_detached_statistics(losses, name):
    torch.manual_seed(0)
    net = nn.Embedding(3, 3) if losses is detached_mean_of_ids else L(6, 3)
    batch = zoo.batch_of(5, 6)
    batch["y"] = torch.tensor([0, 1, 2, 0, 1])
    with pytest.raises(Refused, match="examples are mixed"):
        prepare(name, net, losses, Clip())(batch)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_layer_replaced_after_the_step_was_prepared(name):
    net = Net(lambda n, x: n.l(x), l=L(4, 4)).double()
    step = prepare(name, net, squares, Clip())
    step(batch_of(5, 4))
    net.l = L(4, 4).double()
    with pytest.raises(DpbenchError, match="Prepare the step again"):
        step(batch_of(5, 4))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_parameter_unfrozen_after_the_step_was_prepared(name):
    net = nn.Sequential(L(4, 4), L(4, 4)).double()
    net[0].requires_grad_(False)
    step = prepare(name, net, squares, Clip())
    step(batch_of(5, 4))
    net[0].requires_grad_(True)
    with pytest.raises(DpbenchError, match="Prepare the step again"):
        step(batch_of(5, 4))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_parameters_in_a_list_given_by_keyword(name):
    net = Net(lambda n, x: n.l(x) * torch.cat(tensors=[n.c, n.c], dim=0), l=L(4, 4), c=torch.randn(2))
    assert refusals(name, net, squares, [batch_of(5, 4)]) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_factors_are_never_rounded_up(dtype):
    c = torch.rand(100_000)
    low = factors(c, dtype)
    assert low.dtype == dtype
    assert (low.float() <= c).all()
    assert ((c - low.float()) / c).median() < torch.finfo(dtype).eps
    assert torch.equal(factors(torch.ones(1), dtype).float(), torch.ones(1))


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


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_inputs_may_require_gradients_of_their_own(name):
    net = Net(lambda n, x: n.o(n.l(x.clone().requires_grad_()).tanh()), l=L(4, 4), o=L(4, 3))
    net.l.requires_grad_(False)
    assert refusals(name, net, squares, [batch_of(5, 4)]) == 0


def adversarial(model, batch):
    """The losses at inputs that were moved along their gradient's sign (Goodfellow et al. 2014)."""
    x = batch["x"].clone().requires_grad_()
    (g,) = torch.autograd.grad(model(x).square().sum(), x)
    return model(x.detach() + 0.1 * g.sign()).square().sum(1)


def penalty(model, batch):
    x = batch["x"].clone().requires_grad_()
    out = model(x)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out.square().sum(1) + g.square().sum(1)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_gradients_inside_the_losses(name):
    net = nn.Sequential(L(4, 4), nn.Tanh(), L(4, 3))
    assert refusals(name, net, adversarial, [batch_of(5, 4)]) == 0
    assert refusals(name, net, penalty, [batch_of(5, 4)], "the losses contain a gradient") == 1


def test_gradients_of_gradients_that_come_later_are_refused_too():
    net, batch = nn.Sequential(L(4, 4), nn.Tanh(), L(4, 3)).double(), batch_of(5, 4)
    net.late = False
    step = prepare("bk", net, lambda m, b: penalty(m, b) if m.late else squares(m, b))
    step(batch)
    net.late = True
    with pytest.raises(Refused, match="the losses contain a gradient"):
        step(batch)


@pytest.mark.parametrize("kept", ["in a list", "in the losses"])
def test_vmap_refuses_parameters_that_it_cannot_see(kept):
    net = Net(lambda n, x: nn.functional.linear(x, n.hidden[0]), l=L(4, 3))
    net.hidden = [net.l.weight]
    weight = net.l.weight
    losses = squares if kept == "in a list" else lambda m, b: squares(m.l, b) + weight.square().sum()
    with pytest.raises(Refused, match=r"parameter l.weight is read past the model's attributes"):
        prepare("vmap", net, losses)({"x": torch.randn(5, 4)})


def test_vmap_says_what_it_cannot_run():
    net = Net(lambda n, x: torch.zeros(len(x), 3).add_(n.l(x)), l=L(4, 3))
    with pytest.raises(Refused, match=r"torch\.func\.vmap cannot run this model"):
        prepare("vmap", net, squares)({"x": torch.randn(5, 4)})


def test_random_models_are_compared_with_their_draws_held():
    """Divided by the batch size behind a draw: the losses alone and together differ in nothing else."""
    net = Net(lambda n, x: n.l(x + 0 * torch.randn_like(x)) / len(x) ** 0.5, l=L(4, 3))
    with pytest.raises(Refused, match="examples are mixed"):
        prepare("bk", net, squares)({"x": torch.randn(5, 4)})


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_table_looked_up_by_ids_that_were_flattened(name):
    """The ids are on one axis, and rows of an example beside each other on it."""
    net = Net(lambda n, x: n.t.index_select(0, x.flatten()).view(len(x), -1), t=torch.randn(9, 4))
    batch = {"x": torch.randint(9, (5, 3), generator=torch.Generator().manual_seed(0))}
    assert refusals(name, net, squares, [batch]) == 0
