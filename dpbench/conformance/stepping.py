"""The whole step, not the gradient alone: noise, scaling, accumulation, an empty batch, and what is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import sqrt

import torch
from torch import Generator, Tensor

from dpbench.batch import head
from dpbench.cases import Problem
from dpbench.clipping import Clip
from dpbench.conformance.comparing import Far
from dpbench.conformance.properties import EPSILON, Measured, Property
from dpbench.conformance.trial import in_two, kept, once, prepared
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
FEW = 30
"""Parameters of which all pairs are looked at, and not those alone that follow each other."""
RATE = 0.5


def noise(name: str, problem: Problem, clip: Clip) -> Measured:
    """The noise of a logical step of two physical batches has mean zero and standard deviation sigma R."""
    batch = problem.calls[0].batch
    with prepared(name, problem, clip) as step:
        out = in_two(step, batch)
    return _noise(problem, _clipped(out))


def empty(name: str, problem: Problem, clip: Clip) -> Measured:
    """An empty batch, as Poisson sampling draws it, adds nothing but noise, to every trained parameter."""
    out = _clipped(once(name, problem, clip, head(problem.calls[0].batch, 0)))
    for parameter, g in out.grads.items():
        if g.any():
            return Measured((float("inf"), f"{parameter} (its sum over no example is not zero)"))
    return _noise(problem, out)


def _noise(problem: Problem, out: Output) -> Measured:
    """Privatize again and again, and look at what was added, in units of sigma R."""
    assert out.clip is not None
    generator = Generator().manual_seed(0)
    parameters = dict(problem.model.named_parameters())
    scale = SIGMA * out.clip.sensitivity
    draws: list[dict[str, Tensor]] = []
    while len(draws) < 2 or sum(d.numel() for draw in draws for d in draw.values()) < DRAWS:
        privatize(problem.model, out, SIGMA, EXPECTED, generator)
        draws.append({n: (_grad(parameters[n]) * EXPECTED - g) / scale for n, g in out.grads.items()})
    z = torch.cat([d.flatten() for draw in draws for d in draw.values()])
    figure = f"standard deviation {float(z.std()):.3f} sigma R over {len(z):,} draws"
    off, what = max([*_moments(draws), *_repeated(draws), _shape(z)])
    return Measured((0.0, "") if off <= ERRORS else (off, f"the noise: {what} ({off:.1f} standard errors)"), figure)


def _moments(draws: Sequence[dict[str, Tensor]]) -> Iterator[tuple[float, str]]:
    """Mean and standard deviation of each parameter's noise."""
    for name in draws[0]:
        z = torch.cat([draw[name].flatten() for draw in draws])
        n = len(z)
        yield abs(float(z.mean())) * sqrt(n), f"the mean of {name}"
        yield abs(float(z.square().mean().sqrt()) - 1) * sqrt(2 * n), f"the standard deviation of {name}"


def _repeated(draws: Sequence[dict[str, Tensor]]) -> Iterator[tuple[float, str]]:
    """Whether one draw stands for several: steps, parameters, or the rows of one."""
    names = list(draws[0])
    for name, other in combinations(names, 2) if len(names) <= FEW else pairwise(names):
        yield _correlation([(draw[name].flatten(), draw[other].flatten()) for draw in draws], f"{name} and {other}")
    for name in names:
        between = [(a[name].flatten(), b[name].flatten()) for a, b in pairwise(draws)]
        yield _correlation(between, f"two steps of {name}")
        if draws[0][name].ndim > 1:
            yield _correlation([(d[name][:-1].flatten(), d[name][1:].flatten()) for d in draws], f"rows of {name}")


def _correlation(pairs: Sequence[tuple[Tensor, Tensor]], what: str) -> tuple[float, str]:
    products = torch.cat([a[: len(b)] * b[: len(a)] for a, b in pairs])
    return abs(float(products.sum())) / sqrt(max(len(products), 1)), f"{what} are correlated"


def _shape(z: Tensor) -> tuple[float, str]:
    """The distance of Kolmogorov and Smirnov from the normal distribution; 2.7 / sqrt(n) is as rare as 5 errors."""
    n = len(z)
    normal = 0.5 * (1 + torch.erf(z.sort().values / sqrt(2)))
    steps = torch.arange(n + 1, dtype=z.dtype) / n
    distance = torch.maximum((normal - steps[:-1]).abs().max(), (normal - steps[1:]).abs().max())
    return float(distance) * sqrt(n) * ERRORS / 2.7, "its distribution is not normal"


def scaling(name: str, problem: Problem, clip: Clip) -> Measured:
    """The sum is divided by the expected batch, not by the size that was drawn."""
    out = once(name, problem, clip, problem.calls[0].batch)
    privatize(problem.model, out, 0.0, EXPECTED)
    return Measured(_gradients(problem, {n: g / EXPECTED for n, g in out.grads.items()}))


def whole(name: str, problem: Problem, clip: Clip) -> Measured:
    """Two physical batches, noise of the same seed: the same step as of one batch."""
    batch = problem.calls[0].batch
    with prepared(name, problem, clip) as step:
        one = _clipped(kept(step(batch)))
        two = in_two(step, batch)
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
