"""Multi-head attention: equal to torch's with every option, its weights by the rule of matrices."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from dpbench.rewriting import Rewritten
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.seen import facts, sizes
from tests.zoo import Net

T, E = 4, 6
BUILDS = [
    {},
    {"bias": False},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 3, "vdim": 5},
    {"kdim": 3, "vdim": 5, "add_bias_kv": True, "bias": False},
]
CALLS = [
    {"need_weights": weights, "average_attn_weights": average, "masked": masked}
    for weights, average, masked in product((True, False), (True, False), ("", "padding", "causal", "both", "heads"))
]


def attend(m, x, *, need_weights, average_attn_weights, masked):
    """Attention of all to the first or last three, in the module's own order of axes."""
    q, k, v = x, x[:, :3, : m.kdim], x[:, 1:, : m.vdim]
    masks = {}
    if masked in ("padding", "both"):
        masks["key_padding_mask"] = (torch.arange(3) == 2).expand(len(x), -1)
    if masked in ("causal", "both"):
        masks["attn_mask"] = torch.ones(T, 3).triu(1).bool()
    if masked == "heads":
        masks["attn_mask"] = torch.arange(3.0).expand(2 * len(x), T, 3).to(x)
    given = (q, k, v) if m.batch_first else (t.transpose(0, 1) for t in (q, k, v))
    out, weights = m(*given, need_weights=need_weights, average_attn_weights=average_attn_weights, **masks)
    out = out if m.batch_first else out.transpose(0, 1)
    return out if weights is None else torch.cat([out.flatten(1), weights.flatten(1)], 1)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_equals_torch(build, call, first):
    torch.manual_seed(0)
    m = nn.MultiheadAttention(E, 2, batch_first=first, **build).double()
    x = batch_of(3, T, E)["x"]
    plain = attend(m, x, **call)
    with Rewritten() as mode:
        assert torch.equal(attend(m, x, **call), plain)
    assert mode.happened


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_is_right_with_every_option(build, name):
    torch.manual_seed(0)
    for first, call in ((True, CALLS[0]), (False, CALLS[7]), (True, CALLS[13]), (True, CALLS[19])):
        net = Net(lambda n, x: attend(n.m, x, **call), m=nn.MultiheadAttention(E, 2, batch_first=first, **build))  # noqa: B023
        assert refusals(name, net, squares, [batch_of(size, T, E) for size in (5, 1, T)]) == 0


def test_self_attention_has_one_linear_layer_for_queries_keys_and_values():
    net = Net(lambda n, x: n.m(x, x, x)[0], m=nn.MultiheadAttention(E, 2, batch_first=True))
    assert sizes(net, squares, {"x": torch.randn(2, T, E)}) == {
        "m.in_proj_weight": ("linear", T, E, 3 * E),
        "m.out_proj.weight": ("linear", T, E, E),
    }


def test_projections_of_their_own_are_matrices():
    net = Net(lambda n, x: attend(n.m, x, **CALLS[0]), m=nn.MultiheadAttention(E, 2, kdim=3, vdim=5, batch_first=True))
    assert sizes(net, squares, {"x": torch.randn(2, T, E)}) == {
        "m.q_proj_weight": ("linear", T, E, E),
        "m.k_proj_weight": ("linear", 3, 3, E),
        "m.v_proj_weight": ("linear", 3, 5, E),
        "m.out_proj.weight": ("linear", T, E, E),
    }


def test_of_other_keys_each_part_of_the_weight_is_a_linear_layer():
    net = Net(lambda n, x: n.m(x, x[:, :2], x[:, 1:3])[0], m=nn.MultiheadAttention(E, 2, batch_first=True))
    found = facts(net, squares, {"x": torch.randn(2, T, E)})["m.in_proj_weight"]
    assert (found.rule, found.T, found.d) == ("linear", T + 2 + 2, E)


TRANSFORMERS = {
    "encoder": (lambda: nn.TransformerEncoderLayer(E, 2, 8, dropout=0.0, batch_first=True), lambda m, x: m(x)),
    "encoder, norm first": (
        lambda: nn.TransformerEncoderLayer(E, 2, 8, dropout=0.0, batch_first=True, norm_first=True),
        lambda m, x: m(x, src_mask=torch.ones(T, T).triu(1).bool(), is_causal=True),
    ),
    "encoder, time first": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(E, 2, 8, dropout=0.0), 2, enable_nested_tensor=False),
        lambda m, x: m(x.transpose(0, 1)).transpose(0, 1),
    ),
    "decoder": (
        lambda: nn.TransformerDecoderLayer(E, 2, 8, dropout=0.0, batch_first=True), lambda m, x: m(x, x[:, :2])
    ),
}  # fmt: skip


def cubes(model, batch):
    """Behind a layer norm squares sum to the same for all inputs: their gradients would be rounding alone."""
    return model(batch["x"]).flatten(1).pow(3).sum(1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_transformers_of_torch_are_right(kind, name, training):
    torch.manual_seed(0)
    build, call = TRANSFORMERS[kind]
    net = Net(lambda n, x: call(n.m, x), m=build()).train(training)
    assert refusals(name, net, cubes, [batch_of(5, T, E), batch_of(1, T, E)]) == 0
