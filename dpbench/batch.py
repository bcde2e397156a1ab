"""Batches: pytrees of tensors with the examples on axis 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench.errors import DpbenchError

Batch = Any
"""A pytree of tensors, batch first: every tensor's axis 0 has size B."""


def size(batch: Batch) -> int:
    """B, the number of examples; raises if the tensors disagree."""
    tensors = [leaf for leaf in pytree.tree_leaves(batch) if isinstance(leaf, Tensor)]
    if not tensors:
        raise DpbenchError("the batch holds no tensor; expected a tensor, or a dict or tuple of tensors, (B, ...)")
    sizes = {tuple(t.shape): t.shape[0] if t.ndim else None for t in tensors}
    if len(set(sizes.values())) > 1 or None in sizes.values():
        raise DpbenchError(
            f"the batch's tensors have shapes {', '.join(map(str, sizes))}; expected B on axis 0 of each. "
            "Give what all examples share (a mask, position ids) to the model or the losses, not in the batch."
        )
    return tensors[0].shape[0]


def take(batch: Batch, index: Tensor) -> Batch:
    """The examples at ``index``, in that order."""
    return pytree.tree_map_only(Tensor, lambda t: t[index.to(t.device)], batch)


def example(batch: Batch, i: int) -> Batch:
    """Example i as a batch of one."""
    return pytree.tree_map_only(Tensor, lambda t: t[i : i + 1], batch)


def perturbed(batch: Batch, i: int) -> Batch:
    """Another batch of the same shapes that differs in example i alone.

    Floating-point entries are scaled and shifted, rows of integers are rolled, so that they stay
    valid ids; a single integer (a label) and truth values (a mask) become those of the next example.
    """

    def change(t: Tensor) -> Tensor:
        t = t.clone()
        if t.is_floating_point():
            t[i] = t[i] * 0.5 + 0.25
        elif t.dtype != torch.bool and t.ndim > 1:
            t[i] = t[i].roll(1, -1)
        else:
            t[i] = t[(i + 1) % t.shape[0]]
        return t

    return pytree.tree_map_only(Tensor, change, batch)
