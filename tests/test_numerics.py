from __future__ import annotations

import pytest
import torch

from dpbench.numerics import norms, squared_norms, weighted_sum


@pytest.mark.parametrize("width", [0, 1, 4095, 4096, 4097, 3 * 4096, 3 * 4096 + 5])
def test_equals_float64(width):
    rows = torch.randn(3, width)
    assert torch.allclose(squared_norms(rows).double(), rows.double().square().sum(1), rtol=1e-6)


def test_float32_stays_right_over_many_elements():
    """One float32 accumulator over this many was off by a percent."""
    row = torch.full((1, 20_000_000), 0.01)
    assert norms(row).item() == pytest.approx(0.01 * 20_000_000**0.5, rel=1e-5)


def test_float16_does_not_overflow():
    assert norms(torch.full((1, 4), 300.0, dtype=torch.float16)).item() == pytest.approx(600.0)


def test_weighted_sum_of_any_shape():
    rows, c = torch.randn(4, 2, 3), torch.rand(4)
    assert torch.allclose(weighted_sum(rows, c), (rows * c[:, None, None]).sum(0), atol=1e-6)
