"""A tiny network of each family that is rewritten, or whose rule is another's: ``families.py:NAME``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dpbench.models.synthetic import classify
from tests.zoo import Net

D, H = 6, 4
L = nn.Linear


def _task(workload: Any, model: nn.Module, *shape: int, integers: int = 0) -> Any:
    def batches(size: int, seed: int) -> dict[str, Tensor]:
        g = torch.Generator().manual_seed(seed)
        x = torch.randint(integers, (size, *shape), generator=g) if integers else torch.randn(size, *shape, generator=g)
        return {"x": x, "y": torch.randint(workload.classes, (size,), generator=g)}

    return model, classify, batches


def lstm(workload: Any) -> Any:
    """Two layers, both ways, with projections; vmap would multiply first states of zeros once for all examples."""

    def forward(n: Any, x: Tensor) -> Tensor:
        states = x[:, 0, :3].expand(4, -1, -1), x[:, 1, :H].expand(4, -1, -1)
        return n.o(n.m(x, tuple(s.contiguous() for s in states))[0].mean(1))  # type: ignore[no-any-return]

    m = nn.LSTM(D, H, num_layers=2, bidirectional=True, proj_size=3, batch_first=True)
    return _task(workload, Net(forward, m=m, o=L(6, workload.classes)), workload.seq_len, D)


def gru(workload: Any) -> Any:
    """Time first, then a plain recurrent layer."""

    def forward(n: Any, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        h = x[:1, :, :H].contiguous()
        return n.o(n.r(n.m(x, h)[0], h)[0].mean(0))  # type: ignore[no-any-return]

    net = Net(forward, m=nn.GRU(D, H), r=nn.RNN(H, H, bias=False), o=L(H, workload.classes))
    return _task(workload, net, workload.seq_len, D)


def attention(workload: Any) -> Any:
    """Torch's own encoder layer."""
    m = nn.TransformerEncoderLayer(D, 2, 8, dropout=0.0, batch_first=True)
    return _task(workload, Net(lambda n, x: n.o(n.m(x).mean(1)), m=m, o=L(D, workload.classes)), workload.seq_len, D)


def decoder(workload: Any) -> Any:
    """Transposed convolutions."""
    model = nn.Sequential(
        nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.ReLU(True),
        nn.ConvTranspose2d(4, 4, 2, groups=2, bias=False), nn.Flatten(2),
        nn.ConvTranspose1d(4, 2, 1), nn.AdaptiveAvgPool1d(3), nn.Flatten(), L(6, workload.classes),
    )  # fmt: skip
    return _task(workload, model, 3, 2, 3)


def einsum(workload: Any) -> Any:
    """Heads by einsum."""
    net = Net(
        lambda n, x: n.o(torch.einsum("bthk,hkd->btd", torch.einsum("btd,dhk->bthk", x, n.a).relu(), n.b).mean(1)),
        a=torch.randn(D, 2, 3), b=torch.randn(2, 3, 5), o=L(5, workload.classes),
    )  # fmt: skip
    return _task(workload, net, workload.seq_len, D)


def bags(workload: Any) -> Any:
    """Means of embeddings."""
    return _task(workload, nn.Sequential(nn.EmbeddingBag(9, 5), L(5, workload.classes)), workload.seq_len, integers=9)
