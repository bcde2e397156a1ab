"""FLOPs of operators: torch's formulas, and ours where those are wrong."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from dpbench.complexity.trace import traced


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_grouped_convolution_costs_as_much_forwards_as_for_each_gradient(groups):
    x, w = torch.randn(2, 4, 9, requires_grad=True), torch.randn(8, 4 // groups, 3, requires_grad=True)
    trace = traced(lambda: F.conv1d(x, w, groups=groups).sum().backward(), [x, w])
    once = 2 * 2 * 7 * 8 * (4 // groups) * 3
    assert trace.flops == {"1": once, "2a 2b": 2 * once}


def test_a_transposed_convolution_likewise():
    x, w = torch.randn(2, 4, 9, requires_grad=True), torch.randn(4, 3, 5, requires_grad=True)
    trace = traced(lambda: F.conv_transpose1d(x, w).sum().backward(), [x, w])
    once = 2 * 2 * 9 * 4 * 3 * 5
    assert trace.flops == {"1": once, "2a 2b": 2 * once}


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
