"""The whole step, not the gradient alone: noise, scaling, accumulation, an empty batch, and what is trained."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Generator, Tensor

from dpbench.batch import head, size, take
from dpbench.cases import Problem
from dpbench.clipping import Clip
from dpbench.conformance.comparing import Far
from dpbench.conformance.properties import EPSILON, Measured, Property
from dpbench.conformance.trial import kept, once, prepared
from dpbench.errors import Refused
from dpbench.interface import Output
from dpbench.noise import privatize
from dpbench.parameters import trainable
from dpbench.parity import difference

SIGMA, EXPECTED = 1.3, 7.0
"""The noise multiplier, and an expected batch that is no batch's size."""
DRAWS = 20_000
"""Noise values that are looked at, at least."""
ERRORS = 5
"""Standard errors that a mean or a standard deviation may lie off: by chance one in two million does."""
RATE = 0.5


def noise(name: str, problem: Problem, clip: Clip) -> Measured:
    """The noise of a logical step of two physical batches has mean zero and standard deviation sigma R."""
    batch = problem.calls[0].batch
    half = size(batch) // 2
    with prepared(name, problem, clip) as step:
        out = kept(step(head(batch, half))) + kept(step(take(batch, torch.arange(half, size(batch)))))
    return _noise(problem, _clipped(out))


def empty(name: str, problem: Problem, clip: Clip) -> Measured:
    """An empty batch, as Poisson sampling draws it, adds nothing but noise, to every trained parameter."""
    out = _clipped(once(name, problem, clip, head(problem.calls[0].batch, 0)))
    for parameter, g in out.grads.items():
        if g.any():
            return Measured((float("inf"), f"{parameter} (its sum over no example is not zero)"))
    return _noise(problem, out)


def _noise(problem: Problem, out: Output) -> Measured:
    """Privatize again and again, and look at what was added."""
    generator = Generator().manual_seed(0)
    draws: list[Tensor] = []
    while sum(len(d) for d in draws) < DRAWS:
        privatize(problem.model, out, SIGMA, EXPECTED, generator)
        parameters = dict(problem.model.named_parameters())
        added = [_grad(parameters[n]) * EXPECTED - g for n, g in out.grads.items()]
        draws.append(torch.cat([a.flatten() for a in added]))
    if len(draws) > 1 and torch.equal(draws[0], draws[1]):
        return Measured((float("inf"), "the noise (it is the same in two steps)"))
    assert out.clip is not None
    z = torch.cat(draws) / (SIGMA * out.clip.sensitivity)
    n = len(z)
    figure = f"standard deviation {float(z.std()):.3f} sigma R over {n:,} draws"
    off = max(abs(float(z.mean())) * sqrt(n), abs(float(z.std()) - 1) * sqrt(2 * n))
    return Measured((0.0, "") if off <= ERRORS else (off, f"the noise ({figure})"), figure)


def scaling(name: str, problem: Problem, clip: Clip) -> Measured:
    """The sum is divided by the expected batch, not by the size that was drawn."""
    out = once(name, problem, clip, problem.calls[0].batch)
    privatize(problem.model, out, 0.0, EXPECTED)
    return Measured(_gradients(problem, {n: g / EXPECTED for n, g in out.grads.items()}))


def whole(name: str, problem: Problem, clip: Clip) -> Measured:
    """Two physical batches, noise of the same seed: the same step as of one batch."""
    batch = problem.calls[0].batch
    half = size(batch) // 2
    with prepared(name, problem, clip) as step:
        one = _clipped(kept(step(batch)))
        two = kept(step(head(batch, half))) + kept(step(take(batch, torch.arange(half, size(batch)))))
    privatize(problem.model, one, SIGMA, EXPECTED, Generator().manual_seed(1))
    expected = {n: _grad(p).clone() for n, p in problem.model.named_parameters() if n in one.grads}
    privatize(problem.model, two, SIGMA, EXPECTED, Generator().manual_seed(1))
    return Measured(_gradients(problem, expected))


def moves(name: str, problem: Problem, clip: Clip) -> Measured:
    """A step of SGD moves every trainable parameter by the learning rate times its private gradient."""
    parameters = trainable(problem.model)
    before = {n: p.detach().clone() for n, p in parameters.items()}
    out = _clipped(once(name, problem, clip, problem.calls[0].batch))
    privatize(problem.model, out, SIGMA, EXPECTED, Generator().manual_seed(2))
    torch.optim.SGD(parameters.values(), lr=RATE).step()
    for n, p in parameters.items():
        if torch.equal(p, before[n]):
            return Measured((float("inf"), f"{n} (it does not move)"))
    steps = {n: (before[n] - p.detach()) / RATE for n, p in parameters.items()}
    return Measured(_gradients(problem, steps))


def _gradients(problem: Problem, expected: dict[str, Tensor]) -> Far:
    nothing = torch.zeros(0)
    got = {n: _grad(p) for n, p in problem.model.named_parameters() if n in expected}
    return difference(Output(got, None, nothing), Output(expected, None, nothing), EPSILON)


def _grad(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _clipped(out: Output) -> Output:
    if out.clip is None:
        raise Refused("it does not clip, so no noise makes its step private. Implementations that clip say so.")
    return out


STEPS = [
    Property(f"step/{function.__name__}", (function.__doc__ or "").strip(), source, function)
    for function, source in (
        (noise, "Abadi et al. 2016, 1607.00133, algorithm 1"),
        (scaling, "Abadi et al. 2016, 1607.00133, algorithm 1; Poisson sampling"),
        (whole, "property"),
        (empty, "Poisson sampling: a batch may be empty"),
        (moves, "property"),
    )
]
