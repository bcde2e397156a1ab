"""Refusals that several places have reason to give, in the same words."""

from __future__ import annotations

from dpbench.errors import Refused


def batch_norm(which: str) -> Refused:
    """Of a batch norm in training mode; ``which`` names it."""
    return Refused(
        f"{which} is in training mode: it mixes the examples of a batch, so no example has a gradient of its own. "
        'Use group norm instead (--norm group; norm = "group" in a suite; nn.GroupNorm), or put it into eval mode.'
    )


def double_backward() -> Refused:
    """Of a gradient inside the losses that is differentiated again."""
    return Refused(
        "the losses contain a gradient (autograd.grad with create_graph), and per-sample gradients of gradients are "
        "not computed here. Use tf_privacy, which takes one example at a time."
    )


def reentrant_checkpointing() -> Refused:
    """Of checkpointing by a custom autograd function, which the walk over the graph cannot look into."""
    return Refused(
        "reentrant gradient checkpointing hides the parameters inside it. "
        "Use torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."
    )
