"""Networks drawn by chance from every way in which a parameter meets the batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.zoo import Net


def _time_first(x: Tensor) -> Tensor:
    return x.transpose(0, 1).reshape(-1, x.shape[-1])


def _batch_first(rows: Tensor, x: Tensor) -> Tensor:
    return rows.view(x.shape[1], x.shape[0], -1).transpose(0, 1)


def _channels(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


def _ids(x: Tensor, n: int) -> Tensor:
    return (x.detach()[..., 0] > 0).long() * (n - 1)


Op = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From x (B, T, d), a matrix w (d, d) and a vector v (d,) to another (B, T, d)."""

OPS: dict[str, Op] = {
    "linear": lambda x, w, v: F.linear(x, w, v),
    "matmul": lambda x, w, v: x @ w,
    "matmul, transposed": lambda x, w, v: x @ w.t(),
    "matmul, weight first": lambda x, w, v: _channels(w @ _channels(x)),
    "addmm, folded": lambda x, w, v: torch.addmm(v, x.reshape(-1, x.shape[-1]), w).view_as(x),
    "addmm, folded, time first": lambda x, w, v: _batch_first(torch.addmm(v, _time_first(x), w), x),
    "linear, flattened": lambda x, w, v: (F.linear(x.flatten(0, 1), w) * v).unflatten(0, (x.shape[0], -1)),
    "linear, normalised weight": lambda x, w, v: F.linear(x.permute(2, 0, 1).permute(1, 2, 0), w / w.norm()),
    "linear, bias of its own weight": lambda x, w, v: F.linear(x, w, w[0] * v),
    "einsum": lambda x, w, v: torch.einsum("btd,de->bte", x, w),
    "einsum, weight first": lambda x, w, v: torch.einsum("ed,btd->bte", w, x),
    "einsum, a vector": lambda x, w, v: x * torch.einsum("btd,d->bt", x, v)[..., None],
    "einsum, scaled weight": lambda x, w, v: torch.einsum("btd,de->bte", x, w * v),
    "tensordot": lambda x, w, v: torch.tensordot(x, w, 1),
    "recurrent": lambda x, w, v: torch.rnn_tanh(x, x[None, :, 0] * 0, [w, w, v, v], True, 1, 0.0, False, False, True)[
        0
    ],
    "recurrent, both ways, time first": lambda x, w, v: sum(
        torch.rnn_relu(
            x.transpose(0, 1), x[:, 0].expand(2, -1, -1), [w, w, w, w.t()], False, 1, 0.0, False, True, False
        )[0]
        .transpose(0, 1)
        .chunk(2, -1)
    ),
    "baddbmm": lambda x, w, v: torch.baddbmm(x, x, w.expand(x.shape[0], -1, -1)),
    "scale": lambda x, w, v: x * v,
    "subtract": lambda x, w, v: v - x,
    "where": lambda x, w, v: torch.where(x > 0, v, x),
    "lerp": lambda x, w, v: torch.lerp(x, w[0], w[-1]),
    "addcmul": lambda x, w, v: torch.addcmul(x, v, w[0]),
    "maximum, time first": lambda x, w, v: torch.maximum(x.transpose(0, 1), v).transpose(0, 1),
    "prelu": lambda x, w, v: _channels(F.prelu(_channels(x), v)),
    "softmax of a parameter": lambda x, w, v: x + x.mean(1, keepdim=True) * v.softmax(0),
    "layer norm": lambda x, w, v: F.layer_norm(x, x.shape[-1:], v, v),
    "rms norm, time first": lambda x, w, v: F.rms_norm(x.transpose(0, 1), x.shape[-1:], v, 1e-5).transpose(0, 1),
    "group norm": lambda x, w, v: _channels(F.group_norm(_channels(x), 1, v)),
    "conv1d": lambda x, w, v: _channels(F.conv1d(_channels(x), w[..., None], v)),
    "conv1d, transposed": lambda x, w, v: _channels(
        F.conv_transpose1d(_channels(x), w[..., None].expand(-1, -1, 3), v, padding=1)
    ),
    "conv1d, depthwise": lambda x, w, v: _channels(
        F.conv1d(_channels(x), v[:, None, None].expand(-1, 1, 3), padding=1, groups=x.shape[2])
    ),
    "embedding": lambda x, w, v: F.embedding(_ids(x, len(w)), w, padding_idx=-1) + x,
    "embedding bag": lambda x, w, v: F.embedding_bag(_ids(x, len(w)), w, padding_idx=0)[:, None] + x,
    "index": lambda x, w, v: w[_ids(x, len(w))] + x,
    "class token, expanded": lambda x, w, v: torch.cat([v.expand(x.shape[0], 1, -1), x], 1)[:, : x.shape[1]],
    "class token, repeated": lambda x, w, v: torch.cat([x, v.repeat(x.shape[0], 1, 1)], 1)[:, 1:],
    "matmul, complex": lambda x, w, v: (x.to(torch.complex128) @ torch.complex(w, w.flip(0))).real,
    "conv1d, complex": lambda x, w, v: _channels(
        F.conv1d(_channels(x).to(torch.complex128), torch.complex(w, w.t())[..., None]).imag
    ),
    "mm, by name": lambda x, w, v: torch.mm(x.reshape(-1, x.shape[-1]), mat2=w).view_as(x),
    "linear, one bias for all": lambda x, w, v: F.linear(x, w, v[:1]),
    "linear, a bias for every T": lambda x, w, v: F.linear(x, w, v.expand(x.shape[1], -1)),
    "repeated in blocks": lambda x, w, v: x + w.repeat(x.shape[0], 1).view(x.shape[0], *w.shape).mean(1, keepdim=True),
    "repeated in blocks, by name": lambda x, w, v: (
        x * w[:2].repeat(repeats=(x.shape[0], 1)).view(len(x), -1, len(v))[:, :1]
    ),
    "rows in order": lambda x, w, v: (x @ w)[torch.arange(x.shape[0])] + x[torch.arange(x.shape[0]), -1, None] * v,
    "in place": lambda x, w, v: (x * 1).add_(v).mul_(v),
    "stacked rows": lambda x, w, v: torch.stack([c[..., None] * w[i] for i, c in enumerate(x.unbind(2))]).sum(0),
    "attention, keys": lambda x, w, v: F.scaled_dot_product_attention(x, x @ w, w[:1].expand_as(x) + x),
    "attention, constant keys": lambda x, w, v: F.scaled_dot_product_attention(x, w[None], w[None]),
}

AFTER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "as it is": lambda y, x: y,
    "tanh": lambda y, x: y.tanh(),
    "tanh, in place": lambda y, x: y.tanh_(),
    "residual": lambda y, x: y + x,
}


def network(seed: int) -> tuple[Net, int, list[str]]:
    """A network, the width of its input, and the names of what it is made of."""
    chance = random.Random(seed)
    d = chance.randint(1, 5)
    draw = torch.Generator().manual_seed(seed)
    parts: dict[str, Tensor] = {}

    def parameter(*shape: int) -> str:
        name = f"p{len(parts)}"
        parts[name] = 0.6 * torch.randn(*shape, dtype=torch.float64, generator=draw)
        return name

    shared = parameter(d, d), parameter(d)
    layers = []
    for _ in range(chance.randint(1, 6)):
        w = shared[0] if chance.random() < 0.5 else parameter(d, d)
        v = shared[1] if chance.random() < 0.5 else parameter(d)
        layers.append((chance.choice(list(OPS)), chance.choice(list(AFTER)), w, v))

    def forward(net: Any, x: Tensor) -> Tensor:
        for op, after, w, v in layers:
            x = AFTER[after](OPS[op](x, getattr(net, w), getattr(net, v)), x)
        return x

    return Net(forward, **parts), d, [f"{op} ({after})" for op, after, _, _ in layers]
