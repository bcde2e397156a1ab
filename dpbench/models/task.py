"""A task: a model, one loss per example, and batches to try it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from dpbench.batch import Batch
from dpbench.interface import Losses

Batches = Callable[[int, int], Batch]
"""``batches(size, seed)``: a synthetic batch of that many examples, the same for the same seed."""


@dataclass
class Task:
    """What a workload trains. The model is in float32, on the CPU, in training mode."""

    model: nn.Module
    losses: Losses
    batches: Batches
    kind: str
    """``text``, ``image`` or ``vector``."""
    source: str
    """Where the configuration came from."""
    tokens: int | None = None
    """Tokens in an example of text."""

    @property
    def facts(self) -> dict[str, Any]:
        """What it turned out to be, as a record has it."""
        return {
            "parameters": self.parameters,
            "trainable": self.trainable,
            "tokens": self.tokens,
            "source": self.source,
            "kind": self.kind,
        }

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def trainable(self) -> int:
        """How many of them are asked to be trained."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)


def describe(task: Task) -> str:
    """One line for people: source and parameter counts."""
    frozen = "" if task.trainable == task.parameters else f", {task.trainable:,} of them trained"
    return f"{task.source}; {task.parameters:,} parameters{frozen}"
