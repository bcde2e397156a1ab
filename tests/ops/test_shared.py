"""Several uses of one weight as one: its gradient is their sum."""

from __future__ import annotations

import pytest
import torch

from dpbench.numerics import squared_norms
from dpbench.ops.matrix import Matrix
from dpbench.ops.shared import joined

B, D, P = 3, 4, 5
STEPS = [(), (1,), (2, 3)]
"""The axes between batch and features of each use."""


@pytest.mark.parametrize("transposed", [(False, False, False), (True, True, True), (True, False, True)])
def test_uses_are_joined_along_t_whichever_way_the_weight_stands(transposed):
    torch.manual_seed(0)
    weight = torch.randn(P, D, dtype=torch.float64)
    terms = []
    for axes, way in zip(STEPS, transposed, strict=True):
        d, p = (P, D) if way else (D, P)
        a, ds = (torch.randn(B, *axes, n, dtype=torch.float64) for n in (d, p))
        terms.append((Matrix(weight, a, transposed=way), ds))
    whole = sum(use.instantiate(ds) for use, ds in terms)
    use, ds = joined(terms)
    c = torch.rand(B, dtype=torch.float64)
    assert use.facts(ds).T == 1 + 1 + 6
    assert torch.allclose(use.instantiate(ds), whole, rtol=1e-12, atol=1e-13)
    assert torch.allclose(use.squared_ghost_norm(ds), squared_norms(whole), rtol=1e-12)
    assert torch.allclose(use.weighted_sum(ds, c), torch.einsum("b,bpd->pd", c, whole), rtol=1e-12, atol=1e-13)
