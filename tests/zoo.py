"""Small networks, each for one way in which a parameter meets the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.interface import Losses, Output, Step
from dpbench.reference import per_example


class Net(nn.Module):
    """A module whose forward is a function of itself and the input."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **parts: Any) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, Tensor) else part)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    out = model(batch["x"])
    return F.cross_entropy(out.flatten(1), batch["y"], reduction="none")


def batch_of(size: int, *shape: int, classes: int = 3, integers: int = 0, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(integers, (size, *shape), generator=g) if integers else torch.randn(size, *shape, generator=g)
    return {"x": x, "y": torch.randint(classes, (size,), generator=g)}


class StandardisedConv(nn.Conv1d):
    def forward(self, x: Tensor) -> Tensor:
        w = self.weight
        w = (w - w.mean((1, 2), keepdim=True)) / (w.std((1, 2), keepdim=True) + 1e-5)
        return F.conv1d(x, w, self.bias, self.stride, self.padding)


class Tokens(nn.Module):
    """Tied embedding and head, positions broadcast over the batch, a class token, LayerScale, padding_idx."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6, padding_idx=1)
        self.position = nn.Embedding(8, 6)
        self.cls = nn.Parameter(torch.randn(1, 1, 6))
        self.norm = nn.LayerNorm(6)
        self.linear = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.rand(6))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position(torch.arange(ids.shape[1])[None])
        x = torch.cat([self.cls.expand(ids.shape[0], -1, -1), x], 1)
        x = x + self.scale * self.linear(self.norm(x)).tanh()
        return F.linear(x, self.embedding.weight).mean(1)


def overwritten(net: Any, x: Tensor) -> Tensor:
    h = net.i(x)
    z = net.o(h)
    h.add_(1)
    return z


def in_place(net: Any, x: Tensor) -> Tensor:
    h = net.i(x)
    h += net.a(x)
    h.relu_()
    return net.o(h).mean(1)


def folded(net: Any, x: Tensor) -> Tensor:
    x = net.i(x.transpose(0, 1))
    T, B, d = x.shape
    return net.o(torch.addmm(net.b, x.reshape(T * B, d), net.w).view(T, B, -1).tanh()).mean(0)


L = nn.Linear
Case = tuple[Callable[[], nn.Module], tuple[int, ...], int]

CASES: dict[str, Case] = {
    "in-place activations": (lambda: nn.Sequential(L(6, 7), nn.ReLU(True), L(7, 7), nn.ReLU(True), L(7, 3)), (6,), 0),
    "three axes, in-place residual": (lambda: Net(in_place, i=L(6, 5), a=L(6, 5), o=L(5, 3)), (4, 6), 0),
    "four axes, no bias": (
        lambda: Net(lambda n, x: n.o(n.i(x)).mean((1, 2)), i=L(3, 5, False), o=L(5, 3)),
        (2, 4, 3),
        0,
    ),
    "sequence first, folded addmm": (
        lambda: Net(folded, i=L(6, 6), w=torch.randn(6, 5), b=torch.randn(5), o=L(5, 3)),
        (4, 6),
        0,
    ),
    "tokens": (Tokens, (6,), 11),
    "used twice": (lambda: Net(lambda n, x: n.o(n.m(n.m(x).relu())).mean(1), m=L(6, 6), o=L(6, 3)), (4, 6), 0),
    "one weight, three functions": (
        lambda: Net(
            lambda n, x: n.o(F.linear(x, n.w) + x @ n.w.t() * n.w.mean()).mean(1), w=torch.randn(5, 6), o=L(5, 3)
        ),
        (4, 6),
        0,
    ),
    "chunks of one weight": (
        lambda: Net(
            lambda n, x: n.o(sum(F.linear(x, w) for w in n.w.chunk(3)).tanh()).mean(1), w=torch.randn(15, 6), o=L(5, 3)
        ),
        (4, 6),
        0,
    ),
    "conv2d groups, norms": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(True),
            nn.Conv2d(8, 8, 3, stride=2, groups=4),
            nn.Conv2d(8, 4, (3, 2), padding="same"),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            L(4, 3),
        ),
        (3, 9, 8),
        0,
    ),
    "conv2d circular, depthwise, dilated": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular"),
            nn.Conv2d(8, 8, 3, groups=8, dilation=2, padding=2),
            nn.Flatten(),
            L(8 * 25, 3),
        ),
        (4, 5, 5),
        0,
    ),
    "conv1d stride, conv3d": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 6, 2, stride=2), nn.Unflatten(2, (3, 1, 1)), nn.Conv3d(6, 4, (2, 1, 1)), nn.Flatten(), L(8, 3)
        ),
        (4, 6),
        0,
    ),
    "conv folded into the batch": (
        lambda: Net(
            lambda n, x: n.o(n.c(x.reshape(-1, 1, 6)).view(x.shape[0], 4, -1)).mean(1),
            c=nn.Conv1d(1, 4, 3, stride=2),
            o=L(8, 3),
        ),
        (4, 6),
        0,
    ),
    "standardised convolution": (
        lambda: Net(lambda n, x: n.o(n.c(x).relu().mean(2)), c=StandardisedConv(4, 5, 3), o=L(5, 3)),
        (4, 6),
        0,
    ),
    "transposed convolution": (
        lambda: nn.Sequential(
            nn.ConvTranspose1d(4, 6, 3, 2, padding=1, output_padding=1, groups=2),
            nn.Unflatten(2, (4, 3)),
            nn.ConvTranspose2d(6, 5, 2, dilation=2, bias=False),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            L(5, 3),
        ),
        (4, 6),
        0,
    ),
    "instance norm, rms norm": (
        lambda: nn.Sequential(nn.InstanceNorm1d(4, affine=True), nn.RMSNorm(6), nn.Flatten(), L(24, 3)),
        (4, 6),
        0,
    ),
    "batch norm in eval mode": (lambda: nn.Sequential(nn.BatchNorm1d(6).eval(), L(6, 3)), (6,), 0),
    "attention": (
        lambda: Net(
            lambda n, x: n.o(n.m(x, x, x)[0].mean(1)), m=nn.MultiheadAttention(6, 2, batch_first=True), o=L(6, 3)
        ),
        (4, 6),
        0,
    ),
    "attention, other keys": (
        lambda: Net(
            lambda n, x: n.o(n.m(x, x[:, :2], x[:, 1:3])[0].mean(1)),
            m=nn.MultiheadAttention(6, 2, add_bias_kv=True, batch_first=True),
            o=L(6, 3),
        ),
        (4, 6),
        0,
    ),
    "lstm, stacked, both ways": (
        lambda: Net(
            lambda n, x: n.o(n.m(x)[0].mean(1)),
            m=nn.LSTM(6, 5, num_layers=2, bidirectional=True, proj_size=2, batch_first=True),
            o=L(4, 3),
        ),
        (4, 6),
        0,
    ),
    "gru and rnn, time first": (
        lambda: Net(lambda n, x: n.o(n.r(n.m(x.transpose(0, 1))[0])[1][0]), m=nn.GRU(6, 5), r=nn.RNN(5, 4), o=L(4, 3)),
        (4, 6),
        0,
    ),
    "one cell, twice": (
        lambda: Net(lambda n, x: n.o(n.m(x[:, 0], n.m(x[:, 1]))[0]), m=nn.LSTMCell(6, 5), o=L(5, 3)),
        (2, 6),
        0,
    ),
    "einsum over heads": (
        lambda: Net(
            lambda n, x: n.o(torch.einsum("bthk,hkd->btd", torch.einsum("btd,dhk->bthk", x, n.a).tanh(), n.b).mean(1)),
            a=torch.randn(6, 2, 3),
            b=torch.randn(2, 3, 5),
            o=L(5, 3),
        ),
        (4, 6),
        0,
    ),
    "embedding bag": (lambda: nn.Sequential(nn.EmbeddingBag(10, 5, mode="mean", padding_idx=2), L(5, 3)), (6,), 10),
    "bilinear, einsum, prelu": (
        lambda: Net(
            lambda n, x: n.p(torch.einsum("bd,dk->bk", n.b(x, x), n.w)),
            b=nn.Bilinear(6, 6, 4),
            w=torch.randn(4, 3),
            p=nn.PReLU(3),
        ),
        (6,),
        0,
    ),
    "weight norm": (lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(L(6, 5)), L(5, 3)), (6,), 0),
    "arithmetic in place": (
        lambda: Net(lambda n, x: n.o(n.m(x).add_(n.p).mul_(n.p)), m=L(6, 5), p=torch.randn(5), o=L(5, 3)),
        (6,),
        0,
    ),
    "prompt tokens": (
        lambda: Net(
            lambda n, x: n.o(torch.cat([n.p.repeat(x.shape[0], 1, 1), n.p.expand(x.shape[0], 2, 6), x], 1)).mean(1),
            p=torch.randn(2, 6),
            o=L(6, 3),
        ),
        (4, 6),
        0,
    ),
    "table by index": (lambda: Net(lambda n, x: n.o(n.t[x - 5].mean(1)), t=torch.randn(10, 5), o=L(5, 3)), (6,), 10),
    "declared and never used": (lambda: Net(lambda n, x: n.o(x), m=L(6, 5), o=L(6, 3)), (6,), 0),
    "computed and thrown away": (lambda: Net(lambda n, x: (n.m(x), n.o(x))[1], m=L(6, 5), o=L(6, 3)), (6,), 0),
}


def oracle(name: str, size: int = 5) -> tuple[nn.Module, Losses, Any, Clip, Output]:
    """A case in float64, a clip at the median norm, and what the explicit loop gives."""
    torch.manual_seed(0)
    build, shape, integers = CASES[name]
    model, losses, batch = double(build(), cross_entropy, batch_of(size, *shape, integers=integers))
    norms = per_example(model, losses, batch, Clip()).norms
    assert norms is not None
    clip = Clip(float(norms.median()))
    return model, losses, batch, clip, per_example(model, losses, batch, clip)


def error(out: Output, expected: Output) -> float:
    """Largest relative error of the norms and of each parameter's sum; of a zero sum, by the whole's size."""
    assert out.norms is not None
    assert expected.norms is not None
    worst = (
        ((out.norms - expected.norms).abs() / expected.norms.clamp(min=1e-30)).max().item()
        if out.norms.numel()
        else 0.0
    )
    whole = torch.stack([g.norm() for g in expected.grads.values()]).norm()
    for name, g in expected.grads.items():
        size = g.norm() if g.norm() > 1e-9 * whole else whole
        worst = max(worst, ((out.grads[name] - g).norm() / size.clamp(min=1e-30)).item())
    return worst


def run(step: Step, batch: Any, **kwargs: Any) -> Output:
    """The second step: nothing may be left over from the first."""
    step(batch, **kwargs)
    return step(batch, **kwargs)
