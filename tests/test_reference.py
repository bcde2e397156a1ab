"""The oracle itself, against arithmetic by hand."""

from __future__ import annotations

import torch
from torch import nn

from dpbench.clipping import Clip
from dpbench.reference import per_example


def linear() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    model = nn.Linear(2, 1, bias=False).double()
    return model, {"x": torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], dtype=torch.float64)}


def losses(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return model(batch["x"])[:, 0]


def test_by_hand():
    """The gradient of w . x is x: norms 5, 0.5, 0; clipped to 1 the sum is (0.6, 0.8) + (0.3, 0.4)."""
    model, batch = linear()
    out = per_example(model, losses, batch, Clip(1.0))
    assert torch.allclose(out.norms, torch.tensor([5.0, 0.5, 0.0], dtype=torch.float64))
    assert torch.allclose(out.grads["weight"], torch.tensor([[0.9, 1.2]], dtype=torch.float64))


def test_units_are_summed_before_the_norm():
    model, batch = linear()
    out = per_example(model, losses, batch, Clip(1.0), unit=torch.tensor([0, 0, 1]))
    assert torch.allclose(out.norms, torch.tensor([5.5, 0.0], dtype=torch.float64))
    assert torch.allclose(out.grads["weight"], torch.tensor([[0.6, 0.8]], dtype=torch.float64))


def test_masked_rows_are_zero():
    model, batch = linear()
    out = per_example(model, losses, batch, Clip(1.0), mask=torch.tensor([False, True, True]))
    assert torch.allclose(out.grads["weight"], torch.tensor([[0.3, 0.4]], dtype=torch.float64))
