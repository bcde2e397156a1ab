"""Ghost norms and weighted sums against instantiation, over geometries, whichever way the norm takes."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from dpbench.numerics import squared_norms, weighted_sum
from dpbench.ops import convolution
from dpbench.ops.convolution import Convolution

GEOMETRIES = [
    {"size": (9,), "k": (3,), "stride": (2,), "padding": [(1, 1)], "dilation": (1,), "groups": 2},
    {"size": (6, 5), "k": (3, 3), "stride": (1, 1), "padding": [(1, 1), (1, 1)], "dilation": (1, 1), "groups": 1},
    {"size": (7, 7), "k": (3, 2), "stride": (2, 1), "padding": [(0, 0), (1, 1)], "dilation": (1, 2), "groups": 4},
    {"size": (5, 5), "k": (2, 4), "stride": (1, 1), "padding": [(0, 1), (1, 2)], "dilation": (1, 1), "groups": 1},
    {"size": (3, 4, 3), "k": (2, 1, 2), "stride": (1, 2, 1), "padding": [(1, 1), (0, 0), (0, 0)],
     "dilation": (1, 1, 1), "groups": 2},
    {"size": (1, 1), "k": (3, 3), "stride": (1, 1), "padding": [(1, 1), (1, 1)], "dilation": (1, 1), "groups": 1},
]  # fmt: skip


def use_of(geometry):
    torch.manual_seed(0)
    n, groups = len(geometry["size"]), geometry["groups"]
    x = torch.randn(3, 4, *geometry["size"], dtype=torch.float64)
    weight = torch.randn(8, 4 // groups, *geometry["k"], dtype=torch.float64)
    padded = F.pad(x, [m for pair in reversed(geometry["padding"]) for m in pair])
    convolve = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    out = convolve(padded, weight, None, geometry["stride"], 0, geometry["dilation"], groups)
    names = ("stride", "padding", "dilation", "groups")
    return Convolution(weight, x, **{name: geometry[name] for name in names}), torch.randn_like(out)


@pytest.mark.parametrize("move", [0, 10**9], ids=["products are dear", "moves are dear"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g['size']} {g['k']} groups {g['groups']}")
def test_ghost_norm_is_the_norm_of_the_instantiated_gradient(geometry, move, monkeypatch):
    monkeypatch.setattr(convolution, "MOVE", move)
    use, ds = use_of(geometry)
    assert torch.allclose(use.squared_ghost_norm(ds), squared_norms(use.instantiate(ds)), rtol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g['size']} {g['k']} groups {g['groups']}")
@pytest.mark.parametrize("many", [0, 10**9], ids=["library", "unfolded"])
def test_instantiation_both_ways_and_the_weighted_sum_agree(geometry, many, monkeypatch):
    monkeypatch.setattr(convolution, "MANY_POSITIONS", many)
    use, ds = use_of(geometry)
    c = torch.rand(3, dtype=torch.float64)
    assert torch.allclose(use.weighted_sum(ds, c), weighted_sum(use.instantiate(ds), c), rtol=1e-12, atol=1e-12)


def test_the_pixel_gram_is_taken_where_unfolding_multiplies_more():
    calls = []
    use, ds = use_of(GEOMETRIES[1])
    use._norm_by_pixels = lambda *args: calls.append(args)
    use.parameter = use.parameter.new_zeros(8, 400, 3, 3)
    use.squared_ghost_norm(ds)
    assert calls
