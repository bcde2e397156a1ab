"""The check of a gradient against the explicit loop over the examples, before anything is timed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dpbench.batch import Batch, size
from dpbench.clipping import Clip
from dpbench.coverage import Coverage, covered
from dpbench.double import double
from dpbench.dropout import without_dropout
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import Losses, Output, norm_methods
from dpbench.parameters import trainable
from dpbench.precision import EPSILONS
from dpbench.preparation import prepare, settled
from dpbench.probe import preserved
from dpbench.records import Parity
from dpbench.reference import per_example
from dpbench.registry import load

TOLERANCE = 1e-8
"""Of the check in float64."""
TIMES_LOOP = 10
"""Of the check in the native precision: so many times the loop's own error."""
EXAMPLES = 3
"""Enough to tell one from another, two of three clipped or not at the median norm."""
CALLS = 4
"""Of the losses, to see whether they draw random numbers."""
ROUNDINGS = 1e2
"""By which losses may differ from call to call: a GPU that adds up by atomics does so in another order each time."""
UNCLIPPED = Clip(max_norm=1e30)


@dataclass(frozen=True, slots=True)
class Checked:
    """What came out for one implementation."""

    parity: Parity
    coverage: Coverage


class Oracle:
    """A small problem with its true answer; :meth:`check` holds an implementation against it.

    In float64 it works on a copy. Otherwise it works on the model as it is, and allows ten times the
    error of the loop itself: how far the loop moves when every example is computed beside a copy of
    itself, which changes nothing but the rounding, and at least one rounding. ``native`` is the
    precision of that, one of :data:`dpbench.precision.PRECISIONS`.
    """

    def __init__(self, model: nn.Module, losses: Losses, batch: Batch, clip: Clip, native: str | None = None) -> None:
        losses = without_dropout(model, losses)
        if native is not None:
            self._model, self._losses, self._batch = model, losses, batch
        else:
            self._model, self._losses, self._batch = double(model, losses, batch)
        refuse_random(self._model, self._losses, self._batch)
        self._precision = native or "float64"
        self._epsilon = EPSILONS[native] if native else torch.finfo(torch.float64).eps
        self._known: dict[tuple[float, float | None, tuple[str, ...]], Output] = {}
        self.clip = at_median(clip, self._true(UNCLIPPED, ()).norms)
        true = self._true(self.clip, ())
        self.tolerance = TOLERANCE
        if native is not None:
            moved = per_example(self._model, beside_itself(self._losses), self._batch, self.clip)
            own = difference(moved, true, self._epsilon)[0]
            self.tolerance = TIMES_LOOP * max(own, self._epsilon)

    def check(self, name: str) -> Checked:
        """Run implementation ``name`` on a copy of the model and compare.

        An implementation that gives no norms has clipped nothing and is right only if it says that it
        is not private; then its gradient is to be the plain sum. One that has a stability constant of
        its own is held against the loop with that constant, unless the user asked for another. One that
        freezes parameters is to be right on the others, norms included; its coverage is what is said
        beside every figure of it.
        """
        model = copy.deepcopy(self._model)
        asked = trainable(model)
        step = prepare(name, model, self._losses, self.clip)
        try:
            out = step(self._batch)
            methods = norm_methods(step)
        finally:
            step.close()
        coverage = covered({n: p.numel() for n, p in asked.items()}, out.grads, methods)
        if out.norms is None and load(name).PRIVATE:
            return self._checked(float("inf"), "norms (it gave none)", coverage)
        clip = UNCLIPPED if out.norms is None else settled(name, self.clip)
        return self._checked(*difference(out, self._true(clip, tuple(coverage.frozen)), self._epsilon), coverage)

    def _true(self, clip: Clip, frozen: tuple[str, ...]) -> Output:
        """The right answer over what is not ``frozen``."""
        key = (clip.max_norm, clip.stability, frozen)
        if key not in self._known:
            model = copy.deepcopy(self._model)
            for name in frozen:
                model.get_parameter(name).requires_grad_(False)
            self._known[key] = per_example(model, self._losses, self._batch, clip)
        return self._known[key]

    def _checked(self, error: float, worst: str, coverage: Coverage) -> Checked:
        passed = isfinite(error) and error <= self.tolerance
        return Checked(Parity(passed, error, self.tolerance, self._precision, worst), coverage)


def refuse_random(model: nn.Module, losses: Losses, batch: Batch) -> None:
    """Raise if the losses differ from call to call: no gradient of theirs can be checked."""

    def values() -> Any:
        # With gradients, as losses may contain one of their own.
        found: Any = losses(model, batch)
        return found.detach() if isinstance(found, Tensor) else found

    with preserved(model, fork=False):
        first, *others = (values() for _ in range(CALLS))
    for other in others:
        if isinstance(first, Tensor) and not _same(first, other):
            raise Refused(
                f"the losses are random: two calls on the same batch gave {first.tolist()} and {other.tolist()}. "
                "Make the forward a function of the batch (dropout is switched off in the check; switch off other "
                "random layers)."
            )


def _same(first: Tensor, other: Tensor) -> bool:
    """Whether these are losses of one function, but for rounding."""
    tolerance = ROUNDINGS * torch.finfo(first.dtype).eps if first.is_floating_point() else 0.0
    return torch.allclose(first, other, rtol=tolerance, atol=0.0, equal_nan=True)


def at_median(clip: Clip, norms: Tensor | None) -> Clip:
    """The same clipping with R at the median norm, so that some examples are clipped and some are not."""
    assert norms is not None
    flat = norms if norms.ndim == 1 else norms * sqrt(norms.shape[1])
    middle = float(flat.flatten().double().median())
    if not isfinite(middle) or middle <= 0:
        raise DpbenchError(
            f"the norms of the examples' gradients are {[f'{v:g}' for v in flat.flatten().tolist()[:3]]} in the check; "
            "expected positive, finite numbers. Look at the losses, at the initial weights, and for what mixes "
            "examples: over a batch of one a mean is the example itself."
        )
    return Clip(max_norm=middle, function=clip.function, style=clip.style, stability=clip.stability)


def beside_itself(losses: Losses) -> Losses:
    """The same losses, of every example computed twice in one batch and averaged."""

    def twice(model: nn.Module, batch: Batch) -> Tensor:
        both: Any = pytree.tree_map_only(Tensor, lambda t: torch.cat([t, t]), batch)
        return losses(model, both).reshape(2, size(batch)).mean(0)

    return twice


def difference(got: Output, true: Output, epsilon: float) -> tuple[float, str]:
    """The largest relative error over the norms and the parameters' sums, and where it is.

    The error of a parameter is ``||g - h|| / ||h||``; where the true gradient h is zero but for
    rounding, it is relative to the whole gradient.
    """
    overall = _length(true.grads)
    zero = 1e3 * epsilon * overall
    worst, where = 0.0, ""
    if got.norms is not None and true.norms is not None:
        worst, where = _relative(got.norms, true.norms, float(true.norms.double().norm())), "norms"
    for name, h in true.grads.items():
        if name not in got.grads:
            return float("inf"), f"{name} (it got no gradient)"
        length = float(h.double().norm())
        error = _relative(got.grads[name], h, length if length > zero else overall)
        if error > worst:
            worst, where = error, name
    return worst, where


def _relative(got: Tensor, true: Tensor, scale: float) -> float:
    if got.shape != true.shape:
        return float("inf")
    distance = float((got.double() - true.double()).norm())
    error = distance / scale if scale else (0.0 if distance == 0 else float("inf"))
    # Comparisons with what is not a number are false, whichever way round: it would pass as the smallest.
    return error if error == error else float("inf")


def _length(grads: Mapping[str, Tensor]) -> float:
    return sqrt(sum(float(g.double().pow(2).sum()) for g in grads.values()))
