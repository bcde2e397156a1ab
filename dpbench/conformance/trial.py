"""One implementation on one problem: what it gives at each call."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from dpbench.batch import Batch, head, size, take
from dpbench.cases import Problem
from dpbench.clipping import Clip
from dpbench.conformance.comparing import same_gradients
from dpbench.conformance.subject import seeded
from dpbench.errors import DpbenchError
from dpbench.interface import Output, Step
from dpbench.parameters import trainable
from dpbench.preparation import prepare
from dpbench.tensors import marks


@dataclass(frozen=True, slots=True)
class Trial:
    """What came out; ``asked`` are the parameters that were asked to be trained."""

    outputs: list[Output | None]
    """None for a call that was refused and may be."""
    asked: tuple[str, ...]
    astray: str = ""
    """A parameter whose ``p.grad`` is not what the output says, or what ``close`` left behind."""

    @property
    def frozen(self) -> tuple[str, ...]:
        """Parameters that got no gradient in some call."""
        return tuple(name for name in self.asked if any(name not in out.grads for out in self.outputs if out))

    @property
    def clips(self) -> bool:
        """Whether it gave norms."""
        return any(out.norms is not None for out in self.outputs if out)


def tried(name: str, problem: Problem, clip: Clip, refusable: Collection[int] = ()) -> Trial:
    """Prepare ``name`` once, and make the calls one after the other.

    ``refusable``: numbers of calls that it may refuse, as nothing finite comes out of them.
    """
    parameters, before = trainable(problem.model), marks(problem.model)
    outputs: list[Output | None] = []
    astray = ""
    with prepared(name, problem, clip) as step:
        for i, call in enumerate(problem.calls):
            try:
                with seeded():
                    out = step(call.batch, unit=call.unit, mask=call.mask)
            except DpbenchError:
                if i not in refusable or len(refusable) == len(problem.calls):
                    raise
                outputs.append(None)
                continue
            if name_ := same_gradients(out, parameters):
                astray = astray or f"{name_}.grad (it is not what the output says)"
            outputs.append(kept(out))
    if marks(problem.model) != before:
        astray = astray or "the model (a hook, an attribute or a mode is left on it after close())"
    return Trial(outputs, tuple(parameters), astray)


@contextmanager
def prepared(name: str, problem: Problem, clip: Clip) -> Iterator[Step]:
    """A step that is closed in the end."""
    step = prepare(name, problem.model, problem.losses, clip)
    try:
        yield step
    finally:
        step.close()


def largest_move(name: str, problem: Problem, clip: Clip, batch: Batch) -> float:
    """max_i ||G(batch) - G(batch without i)|| / R, which is to be at most 1."""
    with prepared(name, problem, clip) as step:
        whole = kept(step(batch)).grads
        moves = [_distance(whole, step(without(batch, i)).grads) for i in range(size(batch))]
    return max(moves) / clip.sensitivity


def without(batch: Batch, i: int) -> Batch:
    """All examples but one."""
    return take(batch, torch.tensor([j for j in range(size(batch)) if j != i]))


def _distance(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    return sqrt(sum(float((a[name] - b[name]).pow(2).sum()) for name in a))


def once(name: str, problem: Problem, clip: Clip, batch: Batch) -> Output:
    """What one step gives."""
    with prepared(name, problem, clip) as step:
        return kept(step(batch))


def in_two(step: Step, batch: Batch) -> Output:
    """Two physical batches of one logical step, added up."""
    half = size(batch) // 2
    return kept(step(head(batch, half))) + kept(step(take(batch, torch.arange(half, size(batch)))))


def kept(out: Output) -> Output:
    """A copy that no later step can change; dense, whatever layout a gradient comes in."""
    norms = None if out.norms is None else out.norms.detach().clone()
    grads = {name: g.detach().to_dense() if g.is_sparse else g.detach().clone() for name, g in out.grads.items()}
    return Output(grads, norms, out.losses.detach(), out.clip)
