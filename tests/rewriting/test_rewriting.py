"""When functions are rewritten, and when they are left as they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dpbench.checkpoints import checkpointed
from dpbench.rewriting import REWRITTEN, Rewritten, rewritten
from tests.promise import batch_of, refusals, squares
from tests.zoo import L, Net

NETS = {
    "recurrent": lambda how: Net(lambda n, x: how(lambda z: n.m(z)[0], x), m=nn.LSTM(6, 4, batch_first=True)),
    "attention": lambda how: Net(
        lambda n, x: how(lambda z: n.m(z, z, z)[0], x), m=nn.MultiheadAttention(6, 2, batch_first=True)
    ),
    "einsum": lambda how: Net(
        lambda n, x: how(lambda z: torch.einsum("btd,dhk->bthk", z, n.w).sin(), x), w=torch.randn(6, 2, 3)
    ),
}


def theirs(function, x):
    return checkpoint(function, x, use_reentrant=False)


@pytest.mark.parametrize("kind", NETS)
def test_nothing_is_rewritten_where_no_gradient_is_taken(kind):
    net = NETS[kind](lambda f, x: f(x))
    with Rewritten() as mode, torch.no_grad():
        net(torch.randn(2, 3, 6))
    assert not mode.happened
    with Rewritten() as mode:
        net.requires_grad_(False)(torch.randn(2, 3, 6).requires_grad_())
    assert not mode.happened


@pytest.mark.parametrize("name", ["opacus", "ghostclip"])
@pytest.mark.parametrize("kind", NETS)
def test_a_checkpoint_that_keeps_modes_rewrites_twice(kind, name):
    torch.manual_seed(0)
    assert refusals(name, NETS[kind](checkpointed), squares, [batch_of(5, 3, 6)]) == 0


@pytest.mark.parametrize("name", ["opacus", "ghostclip"])
@pytest.mark.parametrize("kind", NETS)
def test_in_a_checkpoint_that_forgets_them_nothing_is_rewritten(kind, name):
    """It would compute the fused function the second time, whose saved tensors are others."""
    torch.manual_seed(0)
    refused = refusals(name, NETS[kind](theirs), squares, [batch_of(5, 3, 6)], "torch.lstm uses a parameter")
    assert refused == (1 if kind == "recurrent" else 0)


def test_losses_are_rewritten_wherever_the_function_is_called():
    net = Net(lambda n, x: n.l(x), l=L(6, 4))
    seen = []

    def losses(net, batch):
        out = F.embedding_bag(batch["ids"], net.l.weight)
        seen.append(type(out.grad_fn).__name__)
        return out.sum(1)

    batch = {"ids": torch.zeros(2, 3, dtype=torch.long)}
    losses(net, batch)
    rewritten(losses)(net, batch)
    assert seen == ["EmbeddingBagBackward0", "DivBackward0"]


@pytest.mark.parametrize("function", REWRITTEN, ids=lambda f: f.__name__)
def test_the_table_s_activations_are_the_first_arguments(function):
    code = REWRITTEN[function].function.__code__
    activations = REWRITTEN[function].activations
    assert code.co_varnames[: len(activations)] == activations
