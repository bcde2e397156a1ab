"""FLOPs of operators: torch's formulas, and ours where those are wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from dpbench.complexity.meter import traced


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_grouped_convolution_costs_as_much_forwards_as_for_each_gradient(groups):
    x, net = torch.randn(2, 4, 9, requires_grad=True), nn.Conv1d(4, 8, 3, groups=groups)
    trace = traced(lambda: net(x).sum().backward(), [x, net.weight, net.bias], net)
    once = 2 * 2 * 7 * 8 * (4 // groups) * 3
    assert trace.flops == {"1": once, "2a": once, "2b": once}


def test_a_transposed_convolution_likewise():
    x, net = torch.randn(2, 4, 9, requires_grad=True), nn.ConvTranspose1d(4, 3, 5)
    trace = traced(lambda: net(x).sum().backward(), [x, net.weight, net.bias], net)
    once = 2 * 2 * 9 * 4 * 3 * 5
    assert trace.flops == {"1": once, "2a": once, "2b": once}


def test_fused_attention_on_a_cpu_is_counted():
    q = torch.randn(2, 3, 16, 8)
    trace = traced(lambda: F.scaled_dot_product_attention(q, q, q), [q])
    assert trace.total == 2 * (2 * 2 * 3 * 16 * 16 * 8)


def test_products_are_counted_as_torch_does():
    x, w = torch.randn(5, 7, 8), torch.randn(8, 9, requires_grad=True)

    def step():
        (x @ w).square().sum().backward()

    with FlopCounterMode(display=False) as counter:
        step()
    assert traced(step, [x, w]).total == counter.get_total_flops() == 2 * 2 * 5 * 7 * 8 * 9
