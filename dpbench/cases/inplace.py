"""What is written in place, over activations, views, inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dpbench.cases.autograd import mlp
from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, vectors


@case("opacus issue 828")
def relu() -> Problem:
    """An in-place ReLU overwrites a layer's output, on which a hook may sit."""
    layers = nn.Linear(6, 5), nn.ReLU(True), nn.Linear(5, 5), nn.ReLU(True), nn.Linear(5, 3)
    return classified(nn.Sequential(*layers), vectors(5, 6))


@case("pytorch issue 61519")
def relu_on_a_view() -> Problem:
    """The output of a linear layer with bias on three axes is a view, and an in-place ReLU drops a hook on it."""
    layers = nn.Linear(6, 5), nn.ReLU(True), nn.Linear(5, 5), nn.ReLU(True), nn.Linear(5, 3), nn.Flatten()
    return classified(nn.Sequential(*layers), vectors(5, 4, 6))


@case("opacus issue 828")
def relu_on_images() -> Problem:
    """Convolution, group norm and in-place ReLU."""
    layers = nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(True), nn.Conv2d(4, 3, 3), nn.ReLU(True), nn.Flatten(1)
    return classified(nn.Sequential(*layers), vectors(5, 2, 5, 5))


@case("property")
def residual() -> Problem:
    """x += f(x), on the output of a layer, which is a view."""

    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.a(x)
        x += m.b(x.tanh()).tanh()
        logits: Tensor = m.head(x).mean(1)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), b=nn.Linear(5, 5), head=nn.Linear(5, 3)), vectors(5, 4, 6))


@case("property")
def on_a_slice() -> Problem:
    """A part of a layer's output is overwritten, another is scaled through a view."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh().clone()
        h[:, 0] = 0
        h[:, 1:].mul_(2)
        logits: Tensor = m.head(h).mean(1)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 4, 6))


@case("property")
def on_the_output() -> Problem:
    """A part of a linear layer's own output is overwritten: no gradient arrives through it."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x)
        h[:, 0] = 0
        logits: Tensor = m.head(h).mean(1)
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 4, 6))


@case("property")
def parameter_added() -> Problem:
    """Bare parameters are added and multiplied into an activation in place."""

    def forward(m: Any, x: Tensor) -> Tensor:
        logits: Tensor = m.head(m.a(x).add_(m.p).mul_(m.q)).mean(1)
        return logits

    parts = {"a": nn.Linear(6, 5), "p": torch.randn(5), "q": torch.randn(5), "head": nn.Linear(5, 3)}
    return classified(Net(forward, **parts), vectors(5, 4, 6))


@case("property", refused="an activation is overwritten that the backward reads: a plain backward raises, too")
def activation_overwritten() -> Problem:
    """The input of a layer is changed in place after the layer has read it."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        out: Tensor = m.head(h)
        h.add_(1)
        return out

    return classified(Net(forward, a=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 6), max_norm=1.0)


@case("property")
def input_overwritten() -> Problem:
    """The forward changes its input in place, which is a copy of the batch's."""

    def forward(m: Any, x: Tensor) -> Tensor:
        x = x.clone()
        x.sub_(x.mean(1, keepdim=True)).div_(2)
        logits: Tensor = m.body(x)
        return logits

    return classified(Net(forward, body=mlp()), vectors(5, 6))
