from __future__ import annotations

import pytest
import torch

from dpbench.numerics import squared_norms
from dpbench.ops.embedding import Lookup, places_of_equal_ids
from dpbench.ops.matrix import Matrix
from dpbench.ops.shared import joint_squared_ghost_norm


@pytest.mark.parametrize("padding_idx", [None, 1, -1])
@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 9), (4, 3, 2)])
def test_ghost_norm_adds_up_the_rows_of_equal_ids(shape, padding_idx):
    torch.manual_seed(0)
    table = torch.randn(5, 3, dtype=torch.float64)
    ids, ds = torch.randint(5, shape), torch.randn(*shape, 3, dtype=torch.float64)
    use = Lookup(table, ids, padding_idx)
    g = use.instantiate(ds)
    assert torch.allclose(use.squared_ghost_norm(ds), squared_norms(g))
    c = torch.rand(4, dtype=torch.float64)
    assert torch.allclose(use.weighted_sum(ds, c), torch.einsum("b,bvd->vd", c, g))


def test_places_are_shared_by_equal_ids_of_one_example_and_by_no_others():
    ids = torch.randint(4, (3, 7))
    places = places_of_equal_ids(ids)
    for b in range(3):
        for t in range(7):
            for u in range(7):
                assert (places[b, t] == places[b, u]) == (ids[b, t] == ids[b, u])
    assert all(set(places[0].tolist()).isdisjoint(places[b].tolist()) for b in (1, 2))


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_tied_embedding_and_head_have_cross_terms(padding_idx):
    torch.manual_seed(0)
    table = torch.randn(5, 3, dtype=torch.float64)
    ids = torch.randint(5, (4, 6))
    e, a, h = (torch.randn(4, n, d, dtype=torch.float64) for n, d in ((6, 3), (7, 3), (7, 5)))
    terms = [(Lookup(table, ids, padding_idx), e), (Matrix(table, a), h)]
    whole = sum(use.instantiate(ds) for use, ds in terms)
    norm = joint_squared_ghost_norm(terms)
    assert norm is not None
    assert torch.allclose(norm, squared_norms(whole))
    assert not torch.allclose(norm, sum(use.squared_ghost_norm(ds) for use, ds in terms))
