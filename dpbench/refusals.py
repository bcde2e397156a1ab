"""Refusals that several places have reason to give, in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils.checkpoint import CheckpointError

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


def writing(which: str) -> Refused:
    """Of a layer whose forward keeps something of the examples in the model; ``which`` names it."""
    return Refused(
        f"{which} changes the model in its forward as the examples say, which neither clipping nor noise covers. "
        "Build it with track_running_stats=False, or without max_norm."
    )


def sparse_gradient() -> Refused:
    """Of a gradient that autograd gives as a sparse tensor."""
    return Refused("a gradient is sparse: no dense one can be had of a layer with sparse=True. Build it without.")


@contextmanager
def of_plain_backward() -> Iterator[None]:
    """Give the reasons for which a backward of plain autograd fails as refusals with a remedy."""
    try:
        yield
    except CheckpointError as error:
        raise other_forward() from error
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        if "inplace operation" in first:
            raise Refused(
                f"an activation was overwritten in place between its use and the backward: {first.split(' Hint')[0]} "
                "Use the out-of-place operation (x = x + y, relu(x)) there; a plain backward fails, too."
            ) from error
        if "use_reentrant" in first:
            raise reentrant_checkpointing() from error
        raise
