"""A workload of shapes without memory: the real model and losses on fake tensors, of any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils import _pytree as pytree

from dpbench import precision
from dpbench.batch import Batch
from dpbench.errors import DpbenchError, Refused
from dpbench.records import Workload

LARGEST = 1 << 40
"""More examples have more elements than torch can count."""


class ReadsValues(Refused):
    """A model or an implementation needs the values of tensors, which a trace without memory does not have."""


class Faked:
    """Use ``context`` around everything that is done with model, losses and batch.

    Models are built on the meta device, as some constructors read values, which fake tensors refuse.
    """

    def __init__(self, workload: Workload) -> None:
        from dpbench.models import build
        from dpbench.models.spec import parse

        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        with nullcontext() if parse(workload.model).reads_values else torch.device("meta"):
            task = build(workload)
        # Fake parameters cannot be swapped for others of another type.
        precision.cast(workload.precision, task.model.to("meta"))
        self.parameters, self.trainable, self.tokens = task.parameters, task.trainable, task.tokens
        self.facts = task.facts
        self.workload = workload
        example = task.batches(1, workload.seed)
        with self.mode:
            emptied(task.model)
            found = precision.apply(workload.precision, task.model, task.losses, example)
        self.model, self.losses, self._example = found
        self.resize(workload.physical)

    def resize(self, batch: int) -> None:
        """Another batch size for the same model."""
        if batch > LARGEST:
            raise DpbenchError(f"batch is {batch}, expected at most {LARGEST} examples")
        self.workload = replace(self.workload, batch=batch)
        with self.mode:
            self.batch: Batch = pytree.tree_map_only(
                Tensor, lambda t: torch.empty((batch, *t.shape[1:]), dtype=t.dtype), self._example
            )

    @contextmanager
    def context(self, what: str) -> Iterator[None]:
        """The mode; raises ReadsValues where ``what`` runs in it and does so."""
        try:
            with self.mode:
                yield
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise ReadsValues(
                f"{what} reads values of tensors ({error.func}), which a trace without memory does not have. "
                "Measure it instead: dpbench run, at a batch size that is given."
            ) from error
        except DpbenchError:
            raise
        except Exception as error:
            text = next(iter(str(error).splitlines()), "")
            raise DpbenchError(f"{what} raises {type(error).__name__}: {text}") from error

    @property
    def tensors(self) -> list[Tensor]:
        """What is there before a step: parameters, buffers and the batch."""
        batch = [leaf for leaf in pytree.tree_leaves(self.batch) if isinstance(leaf, Tensor)]
        return [*self.model.parameters(), *self.model.buffers(), *batch]


def emptied(model: nn.Module) -> None:
    """Move a model from the meta device to the CPU, where tied parameters stay tied."""
    ties: dict[int, list[tuple[nn.Module, str]]] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                ties.setdefault(id(parameter), []).append((module, name))
    model.to_empty(device="cpu")
    for (first, name), *others in ties.values():
        for module, other in others:
            module._parameters[other] = first._parameters[name]
