"""What the tape cannot see or must not trust is refused by name; what changes between steps is followed."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.errors import DpbenchError, Refused
from dpbench.preparation import prepare
from dpbench.reference import per_example
from tests.zoo import L, Net


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, ds):
        x, w = ctx.saved_tensors
        return ds @ w.T, x.T @ ds


class Reentrant(Net):
    def forward(self, x):
        return self.o(checkpoint(lambda z: self.m(z).relu(), self.i(x), use_reentrant=True))


def written_in_place(net, x):
    x = x * 1
    x[:, 0] = net.p
    return net.o(x)


def no_rule(net, x):
    return net.o(torch.cdist(x[:, None], net.p.repeat_interleave(x.shape[0], 0)).flatten(1))


REFUSED = {
    "custom autograd function": (
        lambda: Net(lambda n, x: n.o(Product.apply(x, n.w)), w=torch.randn(6, 5), o=L(5, 3)),
        "parameter w is used by ProductBackward where no per-sample gradient can be taken"),
    "torch.jit.script": (
        lambda: nn.Sequential(torch.jit.script(L(6, 5)), L(5, 3)), "parameter 0.(weight|bias) is used by"),
    "reentrant checkpointing": (
        lambda: Reentrant(None, i=L(6, 6), m=L(6, 5), o=L(5, 3)), "use_reentrant=False"),
    "overwritten activation": (
        lambda: Net(zoo.overwritten, i=L(6, 5), o=L(5, 3)),
        "overwritten in place between its use and the backward"),
    "batch norm": (lambda: nn.Sequential(nn.BatchNorm1d(6), L(6, 3)), r"0 \(a BatchNorm1d\) is in training mode"),
    "functional batch norm": (
        lambda: Net(lambda n, x: F.batch_norm(n.m(x), None, None, n.w, training=True), m=L(6, 3), w=torch.ones(3)),
        "F.batch_norm is in training mode|examples are mixed"),
    "centred over the batch": (
        lambda: Net(lambda n, x: n.o(n.m(x) - n.m(x).mean(0)), m=L(6, 5), o=L(5, 3)),
        "examples are mixed: through torch.linear, which reads m.weight"),
    "inputs centred over the batch": (
        lambda: Net(lambda n, x: n.o(x - x.mean(0)), o=L(6, 3)), "changing example 1 moved the loss of example"),
    "examples in another order": (
        lambda: Net(lambda n, x: n.o(n.m(x.flip(0))).flip(0), m=L(6, 5), o=L(5, 3)), "examples are mixed"),
    "loop over examples": (
        lambda: Net(lambda n, x: torch.stack([n.o(row) for row in x]), o=L(6, 3)),
        "the operations depend on the batch size"),
    "parameter written in place": (
        lambda: Net(written_in_place, p=torch.randn(()), o=L(6, 3)), "parameter p is used by CopySlices"),
    "no rule and not per example": (
        lambda: Net(no_rule, p=torch.randn(1, 4, 6), o=L(4, 3)), "repeat_interleave uses a parameter and has no rule"),
    "embedding that renormalises": (
        lambda: Net(lambda n, x: n.o(n.e((x > 0).long()).mean(1)), e=nn.Embedding(2, 5, max_norm=1.0), o=L(5, 3)),
        "changes the model in its forward"),
    "whole batch in the loss": (
        lambda: Net(lambda n, x: n.o(x) - n.o(x).mean(), o=L(6, 3)), "examples are mixed"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["bk", "ghostclip"])
@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case, name):
    build, message = REFUSED[case]
    model = build()
    with pytest.raises(Refused, match=message):
        prepare(name, model, zoo.cross_entropy, Clip())(zoo.batch_of(5, 6))


def test_checkpointing_is_right_with_attached_weights_and_refused_with_detached_ones():
    def forward(net, x):
        return net.o(checkpoint(lambda z: net.m(z).relu(), x, use_reentrant=False).mean(1))

    model, losses, batch = double(Net(forward, m=L(6, 5), o=L(5, 3)), zoo.cross_entropy, zoo.batch_of(5, 4, 6))
    expected = per_example(model, losses, batch, Clip(0.5))
    assert zoo.error(zoo.run(prepare("ghostclip", model, losses, Clip(0.5)), batch), expected) < 1e-12
    with pytest.raises(Refused, match="gradient checkpointing recomputes"):
        prepare("bk", model, losses, Clip(0.5))(batch)


def again(function, *args):
    return checkpoint(function, *args, use_reentrant=False)


CHECKPOINTED = {
    "a scale": lambda n, x: n.o(again(lambda z: (n.m(z) * n.p).tanh(), x)),
    "two axes that look alike": lambda n, x: n.o(again(lambda z: n.m(n.m(z).tanh()), x)),
    "a shift in front": lambda n, x: n.o(again(lambda z: (z + n.p).sin() + n.p, x)),
    "a derived weight": lambda n, x: n.o(again(lambda z: F.linear(z, n.m.weight * 2).tanh(), x)),
    "one in another": lambda n, x: n.o(again(lambda z: again(lambda y: n.m(y).tanh() * n.p, z).sin(), x)),
}


@pytest.mark.parametrize("name", ["opacus", "fastgradclip", "ghostclip", "mixghostclip"])
@pytest.mark.parametrize("case", CHECKPOINTED)
def test_bare_and_repeated_parameters_in_a_checkpoint_are_right_with_attached_weights(case, name):
    net = Net(CHECKPOINTED[case], m=L(6, 6), o=L(6, 3), p=torch.randn(6))
    model, losses, batch = double(net, zoo.cross_entropy, zoo.batch_of(6, 6))
    expected = per_example(model, losses, batch, Clip(0.5))
    assert zoo.error(zoo.run(prepare(name, model, losses, Clip(0.5)), batch), expected) < 1e-12


@pytest.mark.parametrize("name", ["bk", "bk_mixghostclip", "bk_mixopt", "opacus_improved", "fastgradclip_improved"])
@pytest.mark.parametrize("case", CHECKPOINTED)
def test_detached_weights_in_a_checkpoint_are_refused_though_all_that_is_saved_looks_alike(case, name):
    """B = d = p = 6: torch compares the shapes of what is saved, which are the same in another order."""
    model, losses, batch = double(
        Net(CHECKPOINTED[case], m=L(6, 6), o=L(6, 3), p=torch.randn(6)), zoo.cross_entropy, zoo.batch_of(6, 6)
    )
    with pytest.raises(Refused, match="recomputes the forward that reads (m.weight|p), which was detached.*opacus"):
        prepare(name, model, losses, Clip(0.5))(batch)


@pytest.mark.parametrize("name", ["bk", "ghostclip"])
def test_frozen_weights_in_a_checkpoint_are_nobodys_concern(name):
    def forward(net, x):
        return net.o(again(lambda z: net.m(z).tanh(), net.i(x)))

    model, losses, batch = double(Net(forward, i=L(6, 6), m=L(6, 6), o=L(6, 3)), zoo.cross_entropy, zoo.batch_of(6, 6))
    model.m.requires_grad_(False)
    expected = per_example(model, losses, batch, Clip(0.5))
    assert zoo.error(zoo.run(prepare(name, model, losses, Clip(0.5)), batch), expected) < 1e-12


@pytest.mark.parametrize("name", ["opacus", "ghostclip"])
def test_a_checkpoint_that_computes_something_else_the_second_time_is_refused(name):
    def forward(net, x):
        return net.o(again(lambda z: net.m(z).tanh() if torch.overrides._len_torch_function_stack() else z, x))

    model, losses, batch = double(Net(forward, m=L(6, 6), o=L(6, 3)), zoo.cross_entropy, zoo.batch_of(5, 6))
    with pytest.raises(Refused, match="recomputes another forward than was run.*Switch off checkpointing"):
        prepare(name, model, losses, Clip(0.5))(batch)


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
def test_a_layer_skipped_on_the_second_step(name):
    net = Net(lambda n, x: n.o(n.m(x).relu() if n.on else x), m=L(6, 6), o=L(6, 3))
    net.on = True
    model, losses, batch = double(net, zoo.cross_entropy, zoo.batch_of(5, 6))
    step = prepare(name, model, losses, Clip(0.5))
    for model.on in (True, False, True, False):
        expected = per_example(model, losses, batch, Clip(0.5))
        assert zoo.error(step(batch), expected) < 1e-12


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
def test_shapes_may_change_between_steps(name):
    model, losses, _, clip, _ = zoo.oracle("tokens")
    step = prepare(name, model, losses, clip)
    for size, T in ((5, 6), (2, 6), (4, 3), (7, 7)):
        batch = zoo.batch_of(size, T, integers=11)
        assert zoo.error(step(batch), per_example(model, losses, batch, clip)) < 1e-12


def test_frozen_parameters_get_no_gradient_and_the_others_stay_right():
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    model.linear.weight.requires_grad_(False)
    model.embedding.weight.requires_grad_(False)
    out = prepare("bk", model, losses, clip)(batch)
    assert zoo.error(out, per_example(model, losses, batch, clip)) < 1e-12
    assert "linear.weight" not in out.grads
    assert model.linear.weight.grad is None


def test_dropout_draws_the_numbers_that_a_plain_forward_would():
    model = nn.Sequential(L(6, 8), nn.Dropout(0.5), L(8, 3)).double()
    batch = {k: v.double() if v.is_floating_point() else v for k, v in zoo.batch_of(5, 6).items()}
    step = prepare("bk", model, zoo.cross_entropy, Clip())
    step(batch)
    torch.manual_seed(7)
    out = step(batch)
    torch.manual_seed(7)
    assert torch.equal(out.losses, zoo.cross_entropy(model, batch).detach())


def test_the_probe_leaves_buffers_and_random_state_alone():
    net = Net(lambda n, x: n.o(F.dropout(x, 0.5)) + 0 * n.count.add_(1).sum(), o=L(6, 3))
    net.register_buffer("count", torch.zeros(1))
    torch.manual_seed(3)
    first = zoo.cross_entropy(net, zoo.batch_of(5, 6)).detach()
    torch.manual_seed(3)
    assert torch.equal(prepare("bk", net, zoo.cross_entropy, Clip())(zoo.batch_of(5, 6)).losses, first)
    assert net.count.item() == 2


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
def test_a_step_holds_on_to_nothing(name):
    kept = []
    net = Net(lambda n, x: (lambda h: (kept.append(weakref.ref(h)), n.o(h))[1])(n.m(x).relu()), m=L(6, 5), o=L(5, 3))
    prepare(name, net, zoo.cross_entropy, Clip())(zoo.batch_of(5, 6))
    gc.collect()
    assert all(ref() is None for ref in kept)


def test_a_step_that_was_refused_holds_on_to_nothing():
    kept = []
    net = Net(lambda n, x: (lambda h: (kept.append(weakref.ref(h)), n.o(Product.apply(h, n.w)))[1])(n.m(x).relu()),
              m=L(6, 5), w=torch.randn(5, 5), o=L(5, 3))  # fmt: skip
    with pytest.raises(Refused):
        prepare("bk", net, zoo.cross_entropy, Clip())(zoo.batch_of(5, 6))
    gc.collect()
    assert all(ref() is None for ref in kept)


@pytest.mark.parametrize("name", ["bk", "bk_mixopt", "opacus", "ghostclip", "fastgradclip_improved"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_gives_the_gradient_to_the_precision_it_has(name, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.LayerNorm(48), L(48, 3))
    batch = zoo.batch_of(5, 4, 6)

    def losses(model, batch):
        with torch.autocast("cpu", dtype):
            return zoo.cross_entropy(model, batch)

    expected = per_example(model, losses, batch, Clip(0.5))
    out = prepare(name, model, losses, Clip(0.5))(batch)
    assert all(g.dtype == torch.float32 for g in out.grads.values())
    assert zoo.error(out, expected) < 0.05


def test_bfloat16_weights():
    torch.manual_seed(0)
    model = nn.Sequential(L(6, 16), nn.ReLU(), L(16, 3)).bfloat16()
    batch = zoo.batch_of(5, 6)
    batch["x"] = batch["x"].bfloat16()
    expected = per_example(model, zoo.cross_entropy, batch, Clip(0.5))
    out = prepare("bk", model, zoo.cross_entropy, Clip(0.5))(batch)
    assert out.norms.dtype == torch.float32
    assert zoo.error(out, expected) < 0.05


@pytest.mark.parametrize("name", ["bk", "ghostclip"])
def test_a_first_batch_with_a_loss_that_is_not_finite_is_named(name):
    batch = zoo.batch_of(5, 6)
    batch["x"][1, 0] = float("inf")
    with pytest.raises(DpbenchError, match="the loss of example 1 is (nan|inf|-inf)"):
        prepare(name, L(6, 3), zoo.cross_entropy, Clip())(batch)


LOSSES = {
    "scalar": (lambda m, b: zoo.cross_entropy(m, b).mean(), r"returned shape \(\); expected one loss per example"),
    "per token": (lambda m, b: m(b["x"]), r"returned shape \(3, 3\); expected one loss per example, shape \(3,\)"),
    "no tensor": (lambda m, b: 1.0, "returned float; expected one loss per example"),
}


@pytest.mark.parametrize("name", ["bk", "opacus", "vmap"])
@pytest.mark.parametrize("case", LOSSES)
def test_losses_must_be_one_number_for_each_example(case, name):
    losses, message = LOSSES[case]
    if name == "vmap":
        message = message.replace("3, 3", "1, 3").replace("3,", "1,")
    with pytest.raises(DpbenchError, match='reduction="none"') as caught:
        prepare(name, L(6, 3), losses, Clip())(zoo.batch_of(5, 6))
    assert caught.match(message)
