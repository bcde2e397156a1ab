"""Precision: cancellation, autocast, casts inside of a model; and forwards that draw random numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, integers, vectors


@case("property")
def nearly_constant() -> Problem:
    """Activations nearly constant over T under gradients that sum to zero: terms of a ghost norm cancel."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return (out * batch["ds"]).sum((1, 2))

    ds = vectors(5, 4, 16, seed=1)
    batch = {"x": 1 + 0.01 * vectors(5, 4, 16), "ds": ds - ds.mean(1, keepdim=True)}
    return Problem(nn.Linear(16, 16, False), losses, (Call(batch),))


@case("property")
def constant() -> Problem:
    """One example's gradient cancels to zero over T: the square of its ghost norm may come out negative."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return (out * batch["ds"]).sum((1, 2))

    x, ds = vectors(5, 2, 4), vectors(5, 2, 4, seed=1)
    x[0, 1], ds[0, 1] = x[0, 0], -ds[0, 0]
    return Problem(nn.Linear(4, 4, False), losses, (Call({"x": x, "ds": ds}),))


@case("property")
def long_and_narrow() -> Problem:
    """T = 300 beside d = p = 3: 45000 products are summed where nine numbers are wanted."""
    model = Net(lambda m, x: m.head(m.a(x).tanh()).mean(1), a=nn.Linear(3, 3), head=nn.Linear(3, 3))
    return classified(model, vectors(5, 300, 3))


def autocast(dtype: torch.dtype) -> Problem:
    """A model whose losses run under autocast on the CPU."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", dtype):
            out = model(batch["x"])
        return F.cross_entropy(out.float(), batch["y"], reduction="none")

    model = Net(
        lambda m, x: m.head(m.norm(m.e(x) + m.a(m.e(x)).relu()).mean(1)),
        e=nn.Embedding(9, 6), a=nn.Linear(6, 6), norm=nn.LayerNorm(6), head=nn.Linear(6, 3),
    )  # fmt: skip
    return Problem(model, losses, (Call({"x": integers(9, 5, 4), "y": integers(3, 5)}),), native=True)


@case("property")
def autocast_bfloat16() -> Problem:
    """Products in bfloat16, parameters and norms in float32."""
    return autocast(torch.bfloat16)


@case("property")
def autocast_float16() -> Problem:
    """Products in float16, which overflows at 65504 and whose squares do so at 256."""
    return autocast(torch.float16)


@case("property")
def autocast_of_convolutions() -> Problem:
    """Convolutions in bfloat16 between group norms."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out = model(batch["x"])
        return F.cross_entropy(out.float(), batch["y"], reduction="none")

    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 3, 3), nn.Flatten(1))
    return Problem(model, losses, (Call({"x": vectors(5, 2, 5, 5), "y": integers(3, 5)}),), native=True)


@case("property")
def autocast_of_a_shared_layer() -> Problem:
    """A layer used twice under autocast: its cast weight is cached, and both uses read one copy."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out = model(batch["x"])
        return F.cross_entropy(out.float(), batch["y"], reduction="none")

    model = Net(lambda m, x: m.head(m.a(m.a(x).tanh())).mean(1), a=nn.Linear(6, 6), head=nn.Linear(6, 3))
    return Problem(model, losses, (Call({"x": vectors(5, 4, 6), "y": integers(3, 5)}),), native=True)


@case("LLaMA: Touvron et al. 2023, 2302.13971")
def cast_inside() -> Problem:
    """A norm that casts to float32 inside, whatever the model is in."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).float()
        h = h * h.square().mean(-1, keepdim=True).rsqrt()
        logits: Tensor = m.head(m.scale * h.to(x.dtype)).mean(1)
        return logits

    parts = {"a": nn.Linear(6, 5), "scale": torch.rand(5), "head": nn.Linear(5, 3)}
    return classified(Net(forward, **parts), vectors(5, 4, 6), rounding=1e-6)


@case("property")
def softmax_in_float32() -> Problem:
    """A softmax that is asked for in float32, and cast back."""
    model = Net(
        lambda m, x: m.head(F.softmax(m.a(x), -1, dtype=torch.float32).to(x.dtype)).mean(1),
        a=nn.Linear(6, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6), rounding=1e-6)


@case("functorch issue 408")
def dropout() -> Problem:
    """Dropout between two layers: each example has a mask of its own."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 3))
    return classified(model, vectors(5, 6), random=True)


@case("property")
def dropout_of_channels() -> Problem:
    """Dropout of whole channels of images."""
    model = nn.Sequential(nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Dropout2d(0.4), nn.Conv2d(6, 3, 3), nn.Flatten(1))
    return classified(model, vectors(5, 2, 5, 5), random=True)


@case("property")
def dropout_in_attention() -> Problem:
    """Dropout of attention weights, inside one call."""
    model = Net(
        lambda m, x: m.head(F.scaled_dot_product_attention(m.q(x), m.k(x), m.v(x), dropout_p=0.3).mean(1)),
        q=nn.Linear(6, 4), k=nn.Linear(6, 4), v=nn.Linear(6, 4), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6), random=True)


@case("stochastic depth: Huang et al. 2016, 1603.09382")
def stochastic_depth() -> Problem:
    """A residual branch is left out for some of the examples, by a draw for each."""

    def forward(m: Any, x: Tensor) -> Tensor:
        kept = (torch.rand(len(x), 1, 1) < 0.6).to(x.dtype)
        logits: Tensor = m.head(x + m.a(x).tanh() * kept / 0.6).mean(1)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 6), head=nn.Linear(6, 3)), vectors(5, 4, 6), random=True)


@case("property")
def noise() -> Problem:
    """Gaussian noise on an activation, of its shape."""
    model = Net(lambda m, x: m.head((h := m.a(x)) + 0.5 * torch.randn_like(h)), a=nn.Linear(6, 5), head=nn.Linear(5, 3))
    return classified(model, vectors(5, 6), random=True)


@case("mixup: Zhang et al. 2017, 1710.09412", refused="mixes examples: each input is a mean of two examples")
def mixup() -> Problem:
    """Every example is mixed with its neighbour in the batch."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        x, y = batch["x"], batch["y"]
        out = model(0.7 * x + 0.3 * x.roll(1, 0))
        own, other = (F.cross_entropy(out, labels, reduction="none") for labels in (y, y.roll(1, 0)))
        return 0.7 * own + 0.3 * other

    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    return Problem(model, losses, (Call({"x": vectors(5, 6), "y": integers(3, 5)}),))
