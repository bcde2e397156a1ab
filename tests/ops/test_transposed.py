"""Transposed convolutions against autograd of the function itself, one example at a time."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench.numerics import squared_norms, weighted_sum
from dpbench.ops import convolution
from dpbench.ops.transposed import TransposedConvolution
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.seen import facts, sizes

GEOMETRIES = [
    {"size": (5,), "k": (3,), "stride": (2,), "padding": (1,), "output_padding": (1,), "dilation": (1,), "groups": 2},
    {"size": (4, 3), "k": (3, 3), "stride": (1, 1), "padding": (1, 1), "output_padding": (0, 0), "dilation": (1, 1),
     "groups": 1},
    {"size": (3, 4), "k": (3, 2), "stride": (2, 3), "padding": (0, 1), "output_padding": (1, 2), "dilation": (1, 2),
     "groups": 4},
    {"size": (3, 3), "k": (2, 2), "stride": (1, 1), "padding": (1, 0), "output_padding": (2, 1), "dilation": (3, 2),
     "groups": 1},
    {"size": (2, 3, 2), "k": (2, 1, 2), "stride": (1, 2, 1), "padding": (1, 0, 0), "output_padding": (0, 1, 0),
     "dilation": (1, 1, 1), "groups": 2},
    {"size": (1, 1), "k": (3, 3), "stride": (2, 2), "padding": (0, 0), "output_padding": (0, 0), "dilation": (1, 1),
     "groups": 1},
]  # fmt: skip


def of(geometry):
    """The use, an output gradient, and the gradient of each example by autograd."""
    torch.manual_seed(0)
    n, groups = len(geometry["size"]), geometry["groups"]
    x = torch.randn(3, 4, *geometry["size"], dtype=torch.float64)
    weight = torch.randn(4, 8 // groups, *geometry["k"], dtype=torch.float64, requires_grad=True)
    spread = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    names = ("stride", "padding", "output_padding", "groups", "dilation")
    options = {name: geometry[name] for name in names}
    out = spread(x, weight, None, **options)
    ds = torch.randn_like(out)
    each = [torch.autograd.grad((out[i] * ds[i]).sum(), weight, retain_graph=True)[0] for i in range(3)]
    return TransposedConvolution(weight.detach(), x, **options), ds, torch.stack(each)


@pytest.mark.parametrize("move", [0, 10**9], ids=["products are dear", "moves are dear"])
@pytest.mark.parametrize("many", [0, 10**9], ids=["library", "unfolded"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_norm_gradient_and_sum_are_those_of_autograd(geometry, many, move, monkeypatch):
    monkeypatch.setattr(convolution, "MANY_POSITIONS", many)
    monkeypatch.setattr(convolution, "MOVE", move)
    use, ds, expected = of(geometry)
    c = torch.rand(3, dtype=torch.float64)
    assert torch.allclose(use.instantiate(ds), expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(use.squared_ghost_norm(ds), squared_norms(expected), rtol=1e-12)
    assert torch.allclose(use.weighted_sum(ds, c), weighted_sum(expected, c), rtol=1e-12, atol=1e-12)


def decoder():
    return nn.Sequential(
        nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.Tanh(),
        nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=2, bias=False), nn.Flatten(2), nn.ConvTranspose1d(6, 2, 1),
    )  # fmt: skip


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_decoder_is_right(name):
    torch.manual_seed(0)
    assert refusals(name, decoder(), squares, [batch_of(size, 3, 2, 3) for size in (5, 1, 6)]) == 0


def test_positions_are_those_of_the_input():
    found = sizes(decoder(), squares, {"x": torch.randn(2, 3, 2, 3)})
    assert found == {
        "0.weight": ("convolution", 2 * 3, 4 * 9, 3),
        "2.weight": ("convolution", 4 * 6, 3 * 6, 4),
        "4.weight": ("convolution", 6 * 10, 2, 6),
    }
    assert facts(decoder(), squares, {"x": torch.randn(2, 3, 2, 3)})["2.weight"].groups == 2
