"""A workload made real: model, losses and batch on their device and in their precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dpbench import precision
from dpbench.batch import Batch
from dpbench.clipping import Clip
from dpbench.interface import Losses
from dpbench.records import Workload


class Built:
    """A workload with its weights and one batch of ``batch`` examples, the same at every time.

    Raises:
        DpbenchError: no such model, or a device or precision that is not there.
    """

    def __init__(self, workload: Workload, batch: int) -> None:
        from dpbench.models import build

        self.device = precision.check_device(workload.device)
        precision.check_precision(workload.precision, self.device)
        torch.manual_seed(workload.seed)
        task = build(workload)
        self.facts = task.facts
        data = task.batches(batch, workload.seed)
        data = pytree.tree_map_only(Tensor, lambda t: t.to(self.device), data)
        self.model: nn.Module
        self.losses: Losses
        self.batch: Batch
        model = task.model.to(self.device)
        self.model, self.losses, self.batch = precision.apply(workload.precision, model, task.losses, data)


def clip_of(workload: Workload) -> Clip:
    """How the workload clips."""
    return Clip(max_norm=workload.max_norm, function=workload.clip_function, style=workload.clip_style)
