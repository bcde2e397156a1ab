"""A tap: an identity on a function's outputs whose backward hands the output gradient ``ds`` on."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class Receiver(Protocol):
    """Where output gradients go."""

    def deliver(self, ds: tuple[Tensor | None, ...]) -> None:
        """Take the gradients of the outputs that were tapped together."""


class Tap(torch.autograd.Function):
    """``Tap.apply(anchor, site, *outputs)``: the outputs, watched.

    The anchor is one scalar for the whole tape. Asking autograd for the anchor's gradient runs every
    tap and every 2a on the way, and no weight gradient. What comes out shares memory with what went
    in and is no view of it: an in-place operation on a view would drop or move its gradient function.
    """

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, site: Receiver, *outputs: Tensor) -> Any:
        """Give the outputs back as tensors of their own."""
        ctx.site = site
        ctx.set_materialize_grads(False)
        fresh = tuple(torch.ops.aten._unsafe_view.default(out, out.shape) for out in outputs)
        return fresh if len(fresh) > 1 else fresh[0]

    @staticmethod
    def backward(ctx: Any, *ds: Any) -> Any:
        """Deliver, and pass on."""
        ctx.site.deliver(ds)
        return None, None, *ds
