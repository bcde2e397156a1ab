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


def detached_checkpointing(which: str) -> Refused:
    """Of a checkpoint around a use of a detached weight; ``which`` names it."""
    return Refused(
        f"gradient checkpointing recomputes the forward that reads {which}, which was detached in the first one and is "
        "not in the second, so that other tensors would be saved. Switch checkpointing (and loss_chunk) off, or use an "
        "implementation with attached weights (opacus, fastgradclip, ghostclip, mixghostclip)."
    )


def other_forward() -> Refused:
    """Of a checkpoint that computed something else the second time."""
    return Refused(
        "gradient checkpointing recomputes another forward than was run: what is random in it, or switched by a "
        "context around the losses, is not there again. Switch off checkpointing or what differs."
    )


def reentrant_checkpointing() -> Refused:
    """Of checkpointing by a custom autograd function, which the walk over the graph cannot look into."""
    return Refused(
        "reentrant gradient checkpointing hides the parameters inside it. "
        "Use torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."
    )
