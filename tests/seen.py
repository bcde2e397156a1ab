"""What the tape sees of a model's parameters: by which rule, and with which T, d and p."""

from __future__ import annotations

from typing import Any

from torch import nn

from dpbench.clipping import Clip
from dpbench.facts import Facts
from dpbench.interface import Losses
from dpbench.parameters import trainable
from dpbench.tapestep import TapeStep


def facts(model: nn.Module, losses: Losses, batch: Any) -> dict[str, Facts]:
    """Of every trained parameter, in one forward."""
    found: dict[str, Facts] = {}

    def look(tape: Any, clipping: Any) -> dict[str, Any]:
        found.update(tape.facts())
        return {}

    TapeStep(model, losses, Clip(), look, attached=False)(batch)
    return found


def sizes(model: nn.Module, losses: Losses, batch: Any) -> dict[str, tuple[Any, ...]]:
    """Rule, T, d and p of every parameter of more than one axis; asserts that norms need no instantiation."""
    matrices = {name for name, p in trainable(model).items() if p.ndim > 1}
    found = {name: f for name, f in facts(model, losses, batch).items() if name in matrices}
    assert all(f.matrix for f in found.values()), found
    return {name: (f.rule, f.T, f.d, f.p) for name, f in found.items()}
