"""A problem built anew for every need, since steps, casts and hooks change models; and its true answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import isfinite

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench import precision
from dpbench.batch import take
from dpbench.cases import Call, Problem
from dpbench.clipping import Clip
from dpbench.double import exact
from dpbench.interface import Output
from dpbench.reference import per_example, together

SEED = 0
DRAWS = 1
"""The seed of what a random forward draws."""


class Subject:
    """What implementations are tried on; ``build`` gives the same problem at every time."""

    def __init__(self, build: Callable[[], Problem]) -> None:
        self._build = build

    def problem(self) -> Problem:
        """As it is, in float32."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return self._build()

    def exact(self, rounded: str = "fp32") -> Problem:
        """In float64; ``rounded``: weights and batches are those that a precision can hold."""
        problem = self.problem()
        if rounded == "bf16":
            _cast(problem, torch.bfloat16)
        _cast(problem, torch.float64)
        problem.losses = exact(problem.losses)
        return problem

    def native(self, name: str) -> Problem:
        """In one of :data:`dpbench.precision.PRECISIONS`."""
        problem = self.problem()
        batches = tuple(call.batch for call in problem.calls)
        problem.model, problem.losses, cast = precision.apply(name, problem.model, problem.losses, batches)
        problem.calls = tuple(
            Call(batch, call.unit, call.mask) for batch, call in zip(cast, problem.calls, strict=True)
        )
        return problem

    def clip(self) -> Clip:
        """With R of the problem, by default the median norm: some examples are clipped, some are not."""
        problem = self.exact()
        R = problem.max_norm
        if R is None:
            call = problem.calls[0]
            norms = _loop(problem, call, Clip()).norms
            assert norms is not None
            R = float(norms.median()) if norms.numel() else 1.0
        return Clip(R if isfinite(R) and R > 0 else 1.0, style=problem.style)


def truths(problem: Problem, clip: Clip, frozen: Iterable[str] = (), call: int | None = None) -> list[list[Output]]:
    """What is right for each call, or for one: one answer, or two; without the ``frozen`` parameters.

    Where the forward draws, what it draws for the batch and for one example after the other; where an
    example's gradient is not finite, the sum with it and the sum of the others.
    """
    parameters = dict(problem.model.named_parameters())
    for name in frozen:
        parameters[name].requires_grad_(False)
    calls = problem.calls if call is None else problem.calls[call : call + 1]
    return [_answers(problem, one, clip) for one in calls]


def _answers(problem: Problem, call: Call, clip: Clip) -> list[Output]:
    with seeded():
        found = [_loop(problem, call, clip)]
    if problem.random:
        with seeded():
            found.append(together(problem.model, problem.losses, call.batch, clip))
    norms = found[0].norms
    assert norms is not None
    if call.unit is None and not norms.isfinite().all():
        finite = norms.isfinite() if norms.ndim == 1 else norms.isfinite().all(1)
        others = _loop(problem, Call(take(call.batch, finite.nonzero().flatten())), clip)
        found.append(Output(others.grads, norms, found[0].losses, clip))
    return found


def _loop(problem: Problem, call: Call, clip: Clip) -> Output:
    return per_example(problem.model, problem.losses, call.batch, clip, unit=call.unit, mask=call.mask)


@contextmanager
def seeded() -> Iterator[None]:
    """A context in which the draws are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(DRAWS)
        yield


def _cast(problem: Problem, dtype: torch.dtype) -> None:
    def cast(t: Tensor) -> Tensor:
        return t.to(dtype) if t.is_floating_point() else t

    problem.model.to(dtype)
    problem.calls = tuple(
        Call(pytree.tree_map_only(Tensor, cast, call.batch), call.unit, call.mask) for call in problem.calls
    )
