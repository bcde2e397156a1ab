"""What every DP gradient has to satisfy, whatever the model: properties that need no other implementation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dpbench.batch import size, take
from dpbench.cases import Problem
from dpbench.clipping import Clip
from dpbench.conformance.comparing import Far
from dpbench.conformance.judge import attempted, clip_for
from dpbench.conformance.subject import Subject
from dpbench.conformance.trial import in_two, kept, largest_move, once, prepared, without
from dpbench.conformance.verdict import Ruling, Verdict
from dpbench.errors import Refused
from dpbench.interface import Output
from dpbench.parameters import trainable
from dpbench.parity import TOLERANCE, UNCLIPPED, difference
from dpbench.registry import load

EPSILON = torch.finfo(torch.float64).eps


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a property is from holding, and the number that it is about."""

    far: Far
    figure: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """One of them; ``measure(name, problem, clip)`` on a problem in float64, whose first call has the batch."""

    name: str
    reason: str
    source: str
    measure: Callable[[str, Problem, Clip], Measured]

    def judge(self, subjects: dict[str, Subject], name: str) -> Verdict:
        """The worst over some problems."""
        return attempted(name, self.name, lambda: self._verdict(subjects, name))

    def _verdict(self, subjects: dict[str, Subject], name: str) -> Verdict:
        found = {label: self.measure(name, s.exact(), clip_for(s, name)) for label, s in subjects.items()}
        where, worst = max(found.items(), key=lambda item: _rank(item[1]))
        error, what = _rank(worst), worst.far[1]
        return Verdict(
            implementation=name,
            check=self.name,
            ruling=Ruling.RIGHT if error <= TOLERANCE else Ruling.WRONG,
            error=error,
            worst=f"{what} in {where}" if what and len(subjects) > 1 else what,
            figure=worst.figure,
            tolerance=TOLERANCE,
        )


def _rank(measured: Measured) -> float:
    error = measured.far[0]
    return error if error == error else float("inf")


def sensitivity(name: str, problem: Problem, clip: Clip) -> Measured:
    """max_i ||G(batch) - G(batch without i)|| <= R, flat and, where factors are per group, per layer."""
    batch = problem.calls[0].batch
    styles = {"flat": clip}
    if load(name).SUPPORTS.groups:
        first = next(iter(trainable(problem.model)))
        styles["per-layer"] = replace(clip, style="per-layer")
        styles["groups"] = replace(clip, style={"first": first, "rest": "*"})
    moves = {style: largest_move(name, problem, clip, batch) for style, clip in styles.items()}
    style, largest = max(moves.items(), key=lambda item: item[1])
    figure = ", ".join(f"{style} {move:.3f} R" for style, move in moves.items())
    return Measured((max(0.0, largest - 1), f"an example moves the sum by {largest:.4g} R ({style})"), figure)


def independence(name: str, problem: Problem, clip: Clip) -> Measured:
    """The norm of an example's gradient is the same whoever else is in the batch."""
    batch = problem.calls[0].batch
    with prepared(name, problem, clip) as step:
        norms = _norms(step(batch))
        others = [_norms(step(without(batch, i))) for i in range(size(batch))]
    expected = [torch.cat([norms[:i], norms[i + 1 :]]) for i in range(size(batch))]
    moved = max(float(((a - b).abs() / b.clamp(min=1e-300)).max()) for a, b in zip(others, expected, strict=True))
    return Measured((moved, "norms"))


def permutation(name: str, problem: Problem, clip: Clip) -> Measured:
    """The order of the examples changes neither their norms nor the sum."""
    batch = problem.calls[0].batch
    order = torch.arange(size(batch)).flip(0)
    with prepared(name, problem, clip) as step:
        first = kept(step(batch))
        second = kept(step(take(batch, order)))
    norms = None if first.norms is None else first.norms[order]
    return Measured(difference(second, Output(first.grads, norms, first.losses), EPSILON))


def accumulation(name: str, problem: Problem, clip: Clip) -> Measured:
    """Two physical batches, added up, give what one batch gives."""
    batch = problem.calls[0].batch
    with prepared(name, problem, clip) as step:
        whole = kept(step(batch))
        parts = in_two(step, batch)
    return Measured(difference(parts, whole, EPSILON))


def unclipped(name: str, problem: Problem, clip: Clip) -> Measured:
    """As R grows the sum becomes the non-private gradient, one ordinary backward of the summed losses."""
    batch = problem.calls[0].batch
    parameters = trainable(problem.model)
    out = once(name, problem, replace(UNCLIPPED, stability=clip.stability), batch)
    losses = problem.losses(problem.model, batch).sum()
    grads = torch.autograd.grad(losses, list(parameters.values()), allow_unused=True)
    true = {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(parameters.items(), grads, strict=True)}
    return Measured(difference(out, Output(true, out.norms, out.losses), EPSILON))


def _norms(out: Output) -> Tensor:
    if out.norms is None:
        raise Refused("it gives no norms, so there is nothing to see in them. Implementations that clip give theirs.")
    return kept(out).norms  # type: ignore[return-value]


PROPERTIES = [
    Property(f"property/{function.__name__}", (function.__doc__ or "").strip(), source, function)
    for function, source in (
        (sensitivity, "Abadi et al. 2016, 1607.00133; Dwork and Roth 2014, definition 3.1"),
        (independence, "Bu et al. 2023, 2210.00038, section 2: g_i depends on example i alone"),
        (permutation, "property"),
        (accumulation, "property"),
        (unclipped, "property"),
    )
]
