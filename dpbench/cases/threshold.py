"""Clipping at the edges: zero, at the threshold, far above and far below; groups of parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, vectors


def product(*rows: tuple[float, ...], **kwargs: Any) -> Problem:
    """The loss x . w, whose gradient is x itself."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return out.sum(1)

    model = nn.Linear(len(rows[0]), 1, bias=False)
    return Problem(model, losses, (Call({"x": torch.tensor(rows)}),), **kwargs)


def split(*rows: tuple[float, ...], **kwargs: Any) -> Problem:
    """The loss x . w with every number of w a parameter of its own: the norm is over all of them."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return out

    model = Net(
        lambda m, x: sum(x[:, i] * w for i, (_, w) in enumerate(m.named_parameters())),
        **{f"w{i}": torch.ones(()) for i in range(len(rows[0]))},
    )
    return Problem(model, losses, (Call({"x": torch.tensor(rows)}),), **kwargs)


def sequences() -> nn.Module:
    """Three modules with parameters: embedding-like, norm, head."""
    return Net(
        lambda m, x: m.head(m.norm(m.a(x)).tanh().mean(1)),
        a=nn.Linear(6, 5), norm=nn.LayerNorm(5), head=nn.Linear(5, 3),
    )  # fmt: skip


@case("property")
def by_arithmetic() -> Problem:
    """Gradients (3, 4), (0, 1), ... at R = 2: norms 5, 1, 2.5 and 10 by hand."""
    rows = (3.0, 4.0), (0.0, 1.0), (-1.5, 2.0), (6.0, -8.0)
    return product(*rows, max_norm=2.0, norms=(5.0, 1.0, 2.5, 10.0))


@case("property")
def over_all_parameters() -> Problem:
    """The same numbers with a parameter for each: (3, 4) is 5 over both, and neither 3 nor 4 nor 7."""
    rows = (3.0, 4.0), (0.0, 1.0), (-1.5, 2.0), (6.0, -8.0)
    return split(*rows, max_norm=2.0, norms=(5.0, 1.0, 2.5, 10.0))


@case("property")
def zero() -> Problem:
    """One gradient is zero: its factor must not make it NaN."""
    return product((3.0, 4.0), (0.0, 0.0), (0.75, 1.0), max_norm=2.0, norms=(5.0, 0.0, 1.25))


@case("property")
def zero_for_all() -> Problem:
    """All gradients are zero, and so is the sum."""
    return product((0.0, 0.0), (0.0, 0.0), max_norm=2.0, norms=(0.0, 0.0))


@case("property")
def at_the_threshold() -> Problem:
    """Norms of exactly R: a factor of one."""
    return product((3.0, 4.0), (0.0, -5.0), (5.0, 0.0), max_norm=5.0, norms=(5.0, 5.0, 5.0))


@case("property")
def all_below() -> Problem:
    """No example is clipped: the plain sum, and no factor above one."""
    return product((3.0, 4.0), (0.0, 1.0), (0.75, 1.0), max_norm=100.0, norms=(5.0, 1.0, 1.25))


@case("property")
def all_above() -> Problem:
    """Every example is clipped to R."""
    return product((3.0, 4.0), (0.0, 1.0), (6.0, 8.0), max_norm=0.5, norms=(5.0, 1.0, 10.0))


@case("De et al. 2022, 2204.13650")
def tiny_threshold() -> Problem:
    """R = 1e-3: all are clipped, and a stability constant of the same size would show."""
    return classified(sequences(), vectors(5, 4, 6), max_norm=1e-3)


@case("property")
def huge_threshold() -> Problem:
    """R = 1e9: the sum is the plain gradient, to the last digit."""
    return classified(sequences(), vectors(5, 4, 6), max_norm=1e9)


@case("fairscale pull request 263")
def overflow() -> Problem:
    """Gradients of 1e20, whose squares no float32 holds: norms may not be narrower than the model."""
    return product((3e20, 4e20), (3.0, 4.0), (0.0, 1.0), max_norm=2.0)


@case("property")
def underflow() -> Problem:
    """Gradients of 1e-25, whose squares are zero in float32."""
    return product((3e-25, 4e-25), (3.0, 4.0), (0.0, 1.0), max_norm=2.0)


@case("Abadi et al. 2016, 1607.00133")
def per_layer() -> Problem:
    """One norm for each module, each with R / sqrt(K)."""
    return classified(sequences(), vectors(5, 4, 6), style="per-layer", max_norm=0.5)


@case("property")
def groups() -> Problem:
    """Two groups by name."""
    return classified(sequences(), vectors(5, 4, 6), style={"norms": "norm.*", "rest": "*"}, max_norm=0.5)


@case("property")
def groups_of_a_shared_parameter() -> Problem:
    """Groups where one parameter has two uses, in modules of different groups: it belongs to the first."""
    a, b = nn.Linear(6, 6), nn.Linear(6, 6)
    b.weight = a.weight
    model = Net(lambda m, x: m.b(m.a(x).tanh()).mean(1), a=a, b=b)

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return out.square().sum(1)

    style = {"a": "a.*", "rest": "*"}
    return Problem(model, losses, (Call({"x": vectors(5, 4, 6)}),), style=style, max_norm=0.5)


@case("property")
def group_without_gradient() -> Problem:
    """A group none of whose parameters is used: its norms are zero, and it keeps its share of R."""
    model = Net(lambda m, x: m.head(x), a=nn.Linear(6, 5), head=nn.Linear(6, 3))
    return classified(model, vectors(5, 6), style="per-layer", max_norm=0.5)
