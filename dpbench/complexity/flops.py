"""Floating-point operations of an operator, by torch's formulas and, where those are wrong, by ours.

A multiplication and an addition count two. Elementwise work counts nothing, as in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

aten = torch.ops.aten


def convolution_backward(
    ds: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, wanted: Sequence[bool], **_: Any,
) -> int:  # fmt: skip
    """As much as the forward for each of input and weight. torch's counter forgets the groups."""
    entries = x.numel() if transposed else ds.numel()
    return 2 * entries * weight.shape[1] * prod(weight.shape[2:]) * sum(wanted[:2])


def attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    """The CPU's fused attention, which torch's counter does not know."""
    count: int = sdpa_flop_count(query.shape, key.shape, value.shape)  # type: ignore[no-untyped-call]
    return count


def attention_backward(ds: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    """Likewise, backwards."""
    count: int = sdpa_backward_flop_count(  # type: ignore[no-untyped-call]
        ds.shape, query.shape, key.shape, value.shape
    )
    return count


CORRECTED: dict[Any, Callable[..., int]] = {
    aten.convolution_backward: convolution_backward,
    aten._scaled_dot_product_flash_attention_for_cpu: attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
}


def flops(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Of one call of an operator; 0 where there is no formula."""
    packet = function._overloadpacket
    if packet in CORRECTED:
        return CORRECTED[packet](*args, **kwargs)
    formula = flop_registry.get(packet)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=out))
