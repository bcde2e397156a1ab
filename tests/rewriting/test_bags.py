"""Bags of embeddings of equal length: equal to torch's, by the rule of lookups."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench.rewriting import Rewritten
from tests.promise import IMPLEMENTATIONS, refusals, squares
from tests.seen import facts
from tests.zoo import Net

V, T, D = 7, 5, 3


def ids(size):
    found = torch.randint(V, (size, T), generator=torch.Generator().manual_seed(size))
    found[0] = 1
    return {"x": found}


def net_of(mode, padding_idx, weighted):
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(V, D, mode=mode, padding_idx=padding_idx)
    if not weighted:
        return Net(lambda n, x: n.e(x), e=bag)
    return Net(lambda n, x: n.e(x, per_sample_weights=n.s(x)[..., 0]), e=bag, s=nn.Embedding(V, 1))


KINDS = [("sum", False), ("mean", False), ("sum", True)]


@pytest.mark.parametrize("padding_idx", [None, 1, -2])
@pytest.mark.parametrize(("mode", "weighted"), KINDS)
def test_equals_torch_also_where_a_bag_is_all_padding(mode, weighted, padding_idx):
    net, x = net_of(mode, padding_idx, weighted).double(), ids(4)["x"]
    plain = net(x)
    with Rewritten() as seen:
        assert torch.allclose(net(x), plain, rtol=1e-13)
    assert seen.happened


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("padding_idx", [None, 1, -2])
@pytest.mark.parametrize(("mode", "weighted"), [*KINDS, ("max", False)])
def test_is_right(mode, weighted, padding_idx, name):
    net = net_of(mode, padding_idx, weighted)
    assert refusals(name, net, squares, [ids(size) for size in (5, 1, T)]) == 0


@pytest.mark.parametrize(("mode", "rule"), [("sum", "embedding"), ("mean", "embedding"), ("max", "generic")])
def test_sum_and_mean_are_lookups(mode, rule):
    (found,) = facts(net_of(mode, None, False), squares, ids(3)).values()
    assert (found.rule, found.matrix) == (rule, rule == "embedding")
