"""What a step gives."""

from __future__ import annotations

import torch

from dpbench.interface import output
from tests.zoo import L


def test_an_output_has_every_parameter_in_its_own_precision():
    model = L(6, 3)
    parameters = dict(model.named_parameters())
    out = output(parameters, {"weight": torch.ones(3, 6, dtype=torch.float64)}, None, torch.zeros(2))
    assert out.grads["weight"].dtype == torch.float32
    assert not out.grads["bias"].any()
    assert model.weight.grad is out.grads["weight"]
