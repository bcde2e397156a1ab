"""What a forward may do with its examples on the way to a parameter; the rest is refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.preparation import prepare
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, right, squares
from tests.zoo import L, Net


def per_example_sum(values, owners, size):
    return torch.zeros(size, dtype=values.dtype).index_add(0, owners, values.flatten(1).square().sum(1))


def packed_by_mask(n, x):
    keep = x[..., 0] > 0
    owners = keep.nonzero()[:, 0]
    return per_example_sum(n.l(x[keep]), owners, len(x))


def packed_by_nonzero(n, x):
    rows, places = (x[..., 0] > 0).nonzero(as_tuple=True)
    return per_example_sum(n.l(x[rows, places]), rows, len(x))


def packed_by_masked_select(n, x):
    keep = x[..., 0] > 0
    chosen = x.masked_select(keep[..., None]).view(-1, x.shape[-1])
    return per_example_sum(n.l(chosen), keep.nonzero()[:, 0], len(x))


def packed_by_where(n, x):
    rows, places = torch.where(x[..., 0] > 0)
    return per_example_sum(n.l(x[rows, places]), rows, len(x))


@pytest.mark.parametrize("forward", [packed_by_mask, packed_by_nonzero, packed_by_masked_select, packed_by_where])
def test_packed_tokens_have_no_known_owner(forward):
    x = -torch.ones(5, 4, 3, dtype=torch.float64)
    for example, count in enumerate([2, 2, 2, 1, 3]):
        x[example, :count] = torch.rand(count, 3, dtype=torch.float64)
    assert refusals("bk", Net(forward, l=L(3, 3)), lambda m, b: m(b["x"]), [{"x": x}])


def test_values_selected_after_the_last_parameter_are_the_losses_own_affair():
    def losses(model, batch):
        out = model(batch["x"]).square()
        return torch.zeros_like(out[:, 0, 0]).index_add(0, *_kept(out))

    def _kept(out):
        keep = out[..., 0] > 0.1
        return keep.nonzero()[:, 0], out[keep].sum(1)

    torch.manual_seed(0)
    assert refusals("bk", L(3, 3), losses, [batch_of(5, 4, 3)]) == 0


@pytest.mark.parametrize("module", [nn.Embedding, nn.EmbeddingBag])
def test_gradients_divided_by_frequency_are_refused(module):
    net = Net(lambda n, x: n.e(x), e=module(7, 3, scale_grad_by_freq=True))
    with pytest.raises(Refused, match="scale_grad_by_freq divides gradients by how often an id occurs"):
        prepare("bk", net, squares, Clip())({"x": torch.randint(7, (5, 4))})


def test_a_bag_of_folded_ids_is_refused():
    net = Net(lambda n, x: n.e(x.flatten(), torch.arange(0, x.numel(), x.shape[1])), e=nn.EmbeddingBag(7, 3))
    with pytest.raises(Refused, match="bags of any length that are packed"):
        prepare("bk", net, squares, Clip())({"x": torch.randint(7, (5, 4))})


def sequence_first(x):
    return x.transpose(0, 1).reshape(-1, x.shape[-1])


def lora(n, x):
    """The low-rank half begins at zero, so that no gradient reaches A: who owns a row must be seen otherwise."""
    h = sequence_first(x)
    h = n.l(h) + h @ n.a @ n.b
    return h.view(x.shape[1], x.shape[0], -1).transpose(0, 1)


def rezero(n, x):
    """Likewise behind a scale of zero."""
    h = sequence_first(x)
    h = h + n.s * n.l(h).tanh()
    return h.view(x.shape[1], x.shape[0], -1).transpose(0, 1)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("forward", [lora, rezero])
def test_the_layout_of_folded_rows_does_not_wait_for_gradients(forward, name):
    torch.manual_seed(0)
    net = Net(forward, l=L(4, 4), a=torch.randn(4, 2), b=torch.zeros(2, 4), s=torch.zeros(1))
    if forward is lora:
        del net.s
    else:
        del net.a, net.b
    net.double()
    step = prepare(name, net, squares, Clip(0.7))
    for seed in range(2):
        batch = batch_of(5, 3, 4, seed=seed)
        assert right(step(batch), net, squares, batch, Clip(0.7))
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.randn_like(p))


def test_rows_that_nothing_tells_apart_are_refused():
    def forward(n, x):
        rows = torch.ones(x.shape[0] * 2, 3, dtype=x.dtype, requires_grad=True) * 1.0
        return x.flatten(1).sum(1, keepdim=True) + n.s * n.l(rows).view(2, x.shape[0], -1).sum(0)

    net = Net(forward, l=L(3, 3), s=torch.zeros(1))
    assert refusals("bk", net, squares, [batch_of(5, 3)], "could not be established")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_attention_does_not_broadcast_over_keys(name):
    def forward(n, x):
        key, value = (p.expand(len(x), -1, -1) if len(x) > 99 else p[None] for p in (n.k, n.v))
        return F.scaled_dot_product_attention(n.l(x), key, value)

    net = Net(forward, l=L(4, 4), k=torch.randn(1, 4), v=torch.randn(1, 4))
    assert refusals(name, net, squares, [batch_of(5, 1, 4), batch_of(5, 3, 4), batch_of(1, 1, 4)]) == 0


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_weight_that_is_only_looked_at_is_no_use(name):
    def forward(n, x):
        g = n.l(x).to(n.l.weight)
        g = g + 0
        return g.mul_(2)

    assert refusals(name, Net(forward, l=L(4, 4)), squares, [batch_of(5, 4)]) == 0
