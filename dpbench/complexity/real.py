"""A workload made real and small, for implementations that read values: the same meter, on tensors with memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench.built import Built
from dpbench.errors import Refused
from dpbench.records import Workload

COPIES = 8
"""How often the parameters should fit into the free memory: weights, gradients, a few per-sample gradients."""


class Real:
    """What :class:`dpbench.complexity.faked.Faked` is, with values."""

    def __init__(self, workload: Workload, parameters: int) -> None:
        free = psutil.virtual_memory().available
        if 4 * COPIES * parameters > free:
            raise Refused(
                f"a trace of real tensors needs about {4 * COPIES * parameters / 1e9:.1f} GB for {parameters} "
                f"parameters, {free / 1e9:.1f} GB are free. Trace fewer layers (--layers)."
            )
        built = Built(workload, workload.physical)
        self.workload = workload
        self.model, self.losses, self.batch = built.model, built.losses, built.batch

    def resize(self, batch: int) -> None:
        """Nothing: it has the batch that it was built with."""

    @contextmanager
    def context(self, what: str) -> Iterator[None]:
        """Nothing: values are there."""
        yield

    @property
    def tensors(self) -> list[Tensor]:
        """What is there before a step: parameters, buffers and the batch."""
        batch = [leaf for leaf in pytree.tree_leaves(self.batch) if isinstance(leaf, Tensor)]
        return [*self.model.parameters(), *self.model.buffers(), *batch]
