"""The one shared step that makes a clipped sum private: noise, and division by the expected batch."""

from __future__ import annotations

import torch
from torch import Generator, nn
from torch._subclasses.fake_tensor import FakeTensor

from dpbench.errors import DpbenchError
from dpbench.interface import Output


def privatize(
    model: nn.Module,
    out: Output,
    noise_multiplier: float,
    expected_batch: float,
    generator: Generator | None = None,
) -> None:
    """Set every ``p.grad`` to ``(sum_i C_i g_i + sigma R N(0, I)) / expected_batch``.

    Call it once per logical step, after adding up the physical batches (``out = step(a) + step(b)``).
    ``noise_multiplier``: sigma; R is that of ``out.clip``. ``expected_batch``: q N under Poisson
    sampling, not the size that was drawn.

    Source: Abadi et al. 2016, 1607.00133, algorithm 1.

    Raises:
        DpbenchError: if a value is out of range, nothing was clipped that noise is asked for, or the
            sum or a norm is not finite.
    """
    if not noise_multiplier >= 0:
        raise DpbenchError(f"noise_multiplier is {noise_multiplier}; expected sigma >= 0")
    if not expected_batch > 0:
        raise DpbenchError(f"expected_batch is {expected_batch}; expected q N > 0, the mean size of a batch")
    if noise_multiplier and out.clip is None:
        raise DpbenchError(
            "the gradient was not clipped, so no noise makes it private. Give the output of a step that clips "
            "(dpbench.prepare of any implementation but nonprivate), or noise_multiplier=0."
        )
    refuse_non_finite(out)
    scale = noise_multiplier * out.clip.sensitivity if out.clip else 0.0
    for name, parameter in model.named_parameters():
        if name not in out.grads:
            continue
        total = out.grads[name]
        if scale:
            noise = torch.empty_like(total).normal_(0.0, scale, generator=generator)
            total = total + noise
        parameter.grad = total / expected_batch


def refuse_non_finite(out: Output) -> None:
    """Raise, naming example (or unit) and parameter, if a norm or a clipped sum is infinite or not a number."""
    if any(isinstance(g, FakeTensor) for g in out.grads.values()):
        return  # They have no values.
    finite = [torch.isfinite(g).all() for g in out.grads.values()]
    if out.norms is not None:
        finite.append(torch.isfinite(out.norms).all())
    # One question to the device in a healthy step; which one it is, is asked only when something is wrong.
    if not finite or torch.stack(finite).all():
        return
    bad = [name for name, g in out.grads.items() if not torch.isfinite(g).all()]
    rows: list[int] = []
    if out.norms is not None:
        rows = (~torch.isfinite(out.norms if out.norms.ndim == 1 else out.norms.sum(1))).nonzero().flatten().tolist()
    who = f"{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:5]))} " if rows else ""
    if who and out.norms is not None and len(out.norms) == len(out.losses):
        who = f"example{who}({', '.join(f'loss {out.losses[i].item():g}' for i in rows[:3])}) "
    elif who:
        who = f"unit{who}"
    where = f"parameter {', '.join(bad[:3])}" if bad else "the norms alone"
    raise DpbenchError(
        f"the gradient is not finite: {who or 'some example '}in {where}. A clipped sum bounds no NaN and no "
        "infinity: take such examples out of the batch, lower the learning rate, or widen the precision."
    )
