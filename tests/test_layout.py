from __future__ import annotations

import pytest
import torch

from dpbench.layout import Layout


@pytest.mark.parametrize("layout", [Layout(0), Layout(1), Layout(0, 1, 4), Layout(0, 4, 1), Layout(1, 2, 3)])
def test_batch_first_gathers_each_examples_entries(layout):
    B, size = 5, 5 * layout.rows
    shape = (size, 7) if layout.axis == 0 else (7, size, 2)
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    first = layout.batch_first(x, B)
    assert first.shape[0] == B
    for b in range(B):
        rows = [(o * B + b) * layout.inner + i for o in range(layout.outer) for i in range(layout.inner)]
        mine = x.index_select(layout.axis, torch.tensor(rows))
        assert torch.equal(layout.single(first[b]), mine)


@pytest.mark.parametrize("layout", [Layout(0), Layout(0, 1, 4), Layout(0, 4, 1), Layout(1, 2, 3)])
def test_spread_repeats_an_example_for_all_its_entries(layout):
    B = 5
    once = torch.arange(B).reshape([B if i == layout.axis else 1 for i in range(3)])
    spread = layout.spread(once, B)
    assert spread.shape[layout.axis] == B * layout.rows
    first = layout.batch_first(spread, B)
    assert all((first[b] == b).all() for b in range(B))
