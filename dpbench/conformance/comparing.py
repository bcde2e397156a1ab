"""How far a step's outputs lie from the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dpbench.interface import Output
from dpbench.parity import difference

Far = tuple[float, str]
"""The largest relative error, and what differed most."""


def nearest(got: Sequence[Output | None], truths: Sequence[Sequence[Output]], epsilon: float) -> Far:
    """The worst call, each held against the nearest of its right answers; what was refused is none."""
    worst: Far = (0.0, "")
    for number, (out, answers) in enumerate(zip(got, truths, strict=True)):
        if out is None:
            continue
        error, where = min((_both(out, true, epsilon) for true in answers), key=lambda far: far[0])
        if error > worst[0]:
            worst = error, f"{where} in call {number + 1}" if len(got) > 1 else where
    return worst


def _both(got: Output, true: Output, epsilon: float) -> Far:
    """Of the gradient, and of the losses: one for each example, whatever a mask leaves out."""
    if got.losses.shape != true.losses.shape:
        return float("inf"), f"losses (of shape {tuple(got.losses.shape)}, expected {tuple(true.losses.shape)})"
    finite = true.losses.isfinite()
    mine, right = (Output({}, out.losses[finite], out.losses) for out in (got, true))
    return max((difference(mine, right, epsilon)[0], "losses"), distance(got, true, epsilon), key=lambda far: far[0])


def distance(got: Output, true: Output, epsilon: float) -> Far:
    """As :func:`dpbench.parity.difference`; where the truth is not finite, it must show in the same places.

    ``p.grad`` has no part in it: :func:`same_gradients` looks at that.
    """
    assert true.norms is not None
    finite = true.norms.isfinite()
    if got.norms is not None and got.norms.shape != true.norms.shape:
        return float("inf"), f"norms (of shape {tuple(got.norms.shape)}, expected {tuple(true.norms.shape)})"
    if bool(finite.all()):
        return difference(got, true, epsilon)
    if got.norms is not None and not torch.equal(got.norms.isfinite(), finite):
        return float("inf"), f"norms ({got.norms.tolist()}, expected {true.norms.tolist()})"
    sums = true.grads
    if not all(bool(g.isfinite().all()) for g in sums.values()):
        if all(bool(g.isfinite().all()) for g in got.grads.values()):
            return float("inf"), "the clipped sum (it is finite, although the gradient of an example is not)"
        sums = {}
    norms = None if got.norms is None else got.norms[finite]
    return difference(Output(got.grads, norms, got.losses), Output(sums, true.norms[finite], true.losses), epsilon)


def not_finite(truths: Sequence[Sequence[Output]]) -> set[int]:
    """The numbers of the calls in which the gradient of an example is infinite or no number."""
    return {
        i
        for i, answers in enumerate(truths)
        if not all(bool(out.norms is None or out.norms.isfinite().all()) for out in answers)
    }


def same_gradients(out: Output, parameters: Mapping[str, Tensor]) -> str:
    """The parameter whose ``p.grad`` is not what the output gives; empty if there is none."""
    for name, g in out.grads.items():
        kept = parameters[name].grad
        if kept is not g and (kept is None or not torch.equal(kept.nan_to_num(), g.nan_to_num())):
            return name
    return ""
