"""Batches: pytrees of tensors with the examples on axis 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dpbench.errors import DpbenchError

Batch = Any
"""A pytree of tensors, batch first: every tensor's axis 0 has size B."""


def size(batch: Batch) -> int:
    """B, the number of examples; raises if the tensors disagree."""
    tensors = [leaf for leaf in pytree.tree_leaves(batch) if isinstance(leaf, Tensor)]
    if not tensors:
        raise DpbenchError("the batch holds no tensor; expected a tensor, or a dict or tuple of tensors, (B, ...)")
    for t in tensors:
        if t.layout != torch.strided or t.is_nested:
            raise DpbenchError(f"the batch holds a {'nested' if t.is_nested else t.layout} tensor; expected dense ones")
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


def head(batch: Batch, count: int) -> Batch:
    """The first ``count`` examples."""
    return pytree.tree_map_only(Tensor, lambda t: t[:count], batch)


def varied(batch: Batch, count: int, attempt: int = 0) -> list[int]:
    """The numbers of ``count`` examples that differ as much as possible; again from the first if there are fewer.

    Examples that are alike show nothing: full masks, equal lengths and equal labels hide what mixes them.
    Attempts after the first draw by chance.
    """
    B = size(batch)
    if attempt:
        drawn = torch.randperm(B, generator=Generator().manual_seed(attempt)).tolist()
        return [drawn[i % B] for i in range(count)]
    columns = []
    for t in pytree.tree_leaves(batch):
        if isinstance(t, Tensor) and t.numel() and not isinstance(t, FakeTensor):
            rows = t.detach().reshape(B, -1).to(torch.float32)
            columns += [rows.mean(1), rows.std(1, correction=0)]
    if not columns:
        return [i % B for i in range(count)]
    features = torch.stack([column.cpu() for column in columns], 1)
    finite = features.isfinite().all(1).nonzero().flatten()
    if len(finite) <= count:
        return [i % B for i in range(count)]
    features = features[finite]
    features = (features - features.mean(0)) / features.std(0, correction=0).clamp(min=1e-6)
    chosen = [int(features.norm(dim=1).argmax())]
    while len(chosen) < count:
        distance = torch.cdist(features, features[chosen]).amin(1)
        distance[chosen] = -1
        chosen.append(int(distance.argmax()))
    return finite[chosen].tolist()


def perturbed(batch: Batch, i: int) -> Batch:
    """Another batch of the same shapes that differs in example i alone: numbers are scaled and shifted.

    Whole numbers are left as they are, as they may be ids, counts or labels.
    """

    def change(t: Tensor) -> Tensor:
        if not t.is_floating_point() or torch.equal(t[i], t[i].round()):
            return t
        t = t.clone()
        t[i] = t[i] * 0.5 + 0.25
        return t

    return pytree.tree_map_only(Tensor, change, batch)
