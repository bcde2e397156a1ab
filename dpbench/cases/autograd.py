"""What a forward may do to the graph: in-place operations, checkpoints, hooks, functions of one's own."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, integers, squares, vectors


def mlp() -> nn.Module:
    """Two layers on the last axis of six."""
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


@case("checkpointing: Chen et al. 2016, 1604.06174")
def checkpointed() -> Problem:
    """A block whose activations are computed again in the backward, without reentry."""
    model = Net(
        lambda m, x: m.head(checkpoint(m.block, m.a(x), use_reentrant=False)).mean(1),
        a=nn.Linear(6, 6), block=mlp(), head=nn.Linear(3, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("checkpointing: Chen et al. 2016, 1604.06174")
def checkpointed_with_reentry() -> Problem:
    """Reentrant checkpointing hides the parameters of its block from a walk over the graph."""
    model = Net(
        lambda m, x: m.head(checkpoint(m.block, m.a(x), use_reentrant=True)),
        a=nn.Linear(6, 6), block=mlp(), head=nn.Linear(3, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 6), max_norm=1.0)


@case("property", refused="the block is left without gradients, though the losses depend on it: no loop would notice")
def checkpointed_with_reentry_first() -> Problem:
    """Reentrant checkpointing on an input without gradient freezes the block, with no more than a warning."""
    model = Net(lambda m, x: m.head(checkpoint(m.block, x, use_reentrant=True)), block=mlp(), head=nn.Linear(3, 3))
    return classified(model, vectors(5, 6))


def layer(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer, to be compiled by TorchScript."""
    return torch.tanh(torch.matmul(x, weight))


@case("property")
def inside_a_script() -> Problem:
    """A parameter is read inside of torch.jit.script, where function modes and hooks see nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        scripted: Any = torch.jit.script(layer)
    model = Net(lambda m, x: m.head(scripted(x, m.w)), w=torch.randn(6, 5), head=nn.Linear(5, 3))
    return classified(model, vectors(5, 6))


class Product(torch.autograd.Function):
    """x @ w, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        """The product."""
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, ds: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of both."""
        x, w = ctx.saved_tensors
        return ds @ w.mT, x.mT @ ds


@case("property")
def inside_a_function() -> Problem:
    """A parameter is read inside of a custom autograd.Function."""
    model = Net(
        lambda m, x: m.head(Product.apply(m.a(x), m.w).tanh()),
        a=nn.Linear(6, 5),
        w=torch.randn(5, 5),
        head=nn.Linear(5, 3),
    )
    return classified(model, vectors(5, 6))


class Reversed(torch.autograd.Function):
    """The identity, whose gradient is turned around."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """The input."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, ds: Tensor) -> Tensor:
        """Its gradient, times -1/2."""
        return -0.5 * ds


@case("domain adversarial training: Ganin et al. 2015, 1505.07818")
def gradient_reversal() -> Problem:
    """A custom autograd.Function without parameters turns the gradient around."""
    model = Net(lambda m, x: m.head(Reversed.apply(m.a(x).tanh())), a=nn.Linear(6, 5), head=nn.Linear(5, 3))
    return classified(model, vectors(5, 6))


@case("property")
def without_gradient() -> Problem:
    """A part of the forward runs under torch.no_grad(), with a layer that is used with gradients, too."""

    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            gate = m.a(x).sigmoid()
        logits: Tensor = m.head(m.a(x).tanh() * gate).mean(1)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 4, 6))


@case("property")
def detached() -> Problem:
    """An activation is detached in the middle: layers below get gradients from the other branch alone."""
    model = Net(
        lambda m, x: m.head((h := m.a(x).tanh()) + m.b(h.detach())).mean(1),
        a=nn.Linear(6, 5), b=nn.Linear(5, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def detached_weight() -> Problem:
    """A parameter is used once as it is and once detached."""
    model = Net(lambda m, x: F.linear(F.linear(x, m.w).tanh(), m.w.detach()), w=torch.randn(6, 6))
    return Problem(model, squares, (Call({"x": vectors(5, 6)}),))


@case("property")
def hook_on_an_activation() -> Problem:
    """A hook on an activation halves its gradient: linear in the losses, so every example has its own."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        if h.requires_grad:
            h.register_hook(lambda ds: 0.5 * ds)
        logits: Tensor = m.head(h)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 6))


@case(
    "property", refused="a hook divides a gradient by its norm over the batch: a sum's gradient is no sum of gradients"
)
def hook_that_normalises() -> Problem:
    """A hook on an activation normalises its gradient over the whole batch."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        if h.requires_grad:
            h.register_hook(lambda ds: ds / ds.norm().clamp(min=1e-9))
        logits: Tensor = m.head(h)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 6))


@case("property")
def functional_call() -> Problem:
    """The model calls a part of itself by torch.func.functional_call, with weights that it has changed."""

    def forward(m: Any, x: Tensor) -> Tensor:
        weights = {name: p * 2 for name, p in m.body.named_parameters()}
        logits: Tensor = torch.func.functional_call(m.body, weights, (x,))
        return logits

    return classified(Net(forward, body=mlp()), vectors(5, 6))


@case("straight-through estimator: Bengio et al. 2013, 1308.3432")
def straight_through() -> Problem:
    """A rounded activation, and a rounded weight, whose gradients pass as if they were not."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = F.linear(x, m.w + (m.w.sign() - m.w).detach()).tanh()
        logits: Tensor = m.head(h + (h.round() - h).detach())
        return logits

    return classified(Net(forward, w=torch.randn(5, 6), head=nn.Linear(5, 3)), vectors(5, 6))


@case("gradient penalty: Gulrajani et al. 2017, 1704.00028")
def gradient_of_a_gradient() -> Problem:
    """The norm of each example's input gradient is part of its loss: a gradient is differentiated."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        x = batch["x"].clone().requires_grad_()
        out: Tensor = model(x)
        (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return out.square().sum(1) + (g.square().sum(1).sqrt() - 1).square()

    return Problem(mlp(), losses, (Call({"x": vectors(5, 6)}),))


@case("adversarial training: Goodfellow et al. 2014, 1412.6572")
def adversarial() -> Problem:
    """Each example is moved along the sign of its own gradient first: a backward inside of the forward."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        x, y = batch["x"].clone().requires_grad_(), batch["y"]
        with torch.enable_grad():
            (g,) = torch.autograd.grad(F.cross_entropy(model(x), y, reduction="sum"), x)
        return F.cross_entropy(model(x.detach() + 0.1 * g.sign()), y, reduction="none")

    return Problem(mlp(), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))


@case("property")
def two_graphs() -> Problem:
    """The model runs twice in one loss, the second time on its own detached output."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        first = model(batch["x"])
        again = model(torch.cat([first.detach(), first.detach()], 1))
        both: Tensor = F.cross_entropy(first, batch["y"], reduction="none") + again.square().sum(1)
        return both

    return Problem(mlp(), losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))
