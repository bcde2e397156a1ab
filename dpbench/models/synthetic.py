"""Small networks of plain torch layers, for trials and for layer-by-layer comparisons."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench import losses
from dpbench.errors import DpbenchError, unknown
from dpbench.models.batches import classified, sequences
from dpbench.models.options import checked, defaults
from dpbench.models.spec import Spec
from dpbench.models.task import Task
from dpbench.records import Workload


class Transformer(nn.Module):
    """Token and position embeddings, causal attention, an untied head."""

    def __init__(self, width: int, depth: int, heads: int, vocab: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to logits (B, T, V)."""
        logits: Tensor = self.head(self.hidden(ids))
        return logits

    def hidden(self, ids: Tensor) -> Tensor:
        """What the head reads, (B, T, width)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.norm(x)
        return out


class Block(nn.Module):
    """Attention and a feed-forward layer, norm first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, width) to the same."""
        B, T, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        attended = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(attended.transpose(1, 2).reshape(B, T, -1))
        out: Tensor = x + self.down(F.gelu(self.up(self.norm2(x))))
        return out


def mlp(workload: Workload, width: int = 128, depth: int = 4, features: int = 0, inplace: bool = False) -> Task:
    """Linear layers with ReLU between; three axes of input where T is given."""
    features, classes = features or width, workload.classes or width
    depth = workload.layers or depth
    sizes = [features, *[width] * (depth - 1), classes]
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.ReLU(inplace)]
    model = nn.Sequential(*parts[:-1])
    T = workload.seq_len
    shape = (features,) if T is None else (T, features)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        out = model(batch["x"])
        return losses.cross_entropy(out if T is None else out.mean(1), batch["y"])

    source = f"{depth} linear layers of width {width}"
    return Task(model, loss, classified(shape, classes), "vector", source)


def cnn(workload: Workload, channels: int = 16, depth: int = 3) -> Task:
    """3x3 convolutions with group norm, a mean over pixels, a linear classifier."""
    classes, size, depth = workload.classes or 10, workload.image_size or 32, workload.layers or depth
    parts: list[nn.Module] = []
    for i in range(depth):
        convolution = nn.Conv2d(3 if i == 0 else channels, channels, 3, padding=1)
        parts += [convolution, nn.GroupNorm(gcd(4, channels), channels), nn.ReLU()]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
    source = f"{depth} convolutions of {channels} channels"
    return Task(model, classify, classified((3, size, size), classes), "image", source)


def transformer(workload: Workload, width: int = 64, depth: int = 2, heads: int = 4, vocab: int = 1000) -> Task:
    """A causal language model."""
    T, depth = workload.seq_len or 64, workload.layers or depth
    if width % heads:
        given = f"width={width} and heads={heads}"
        raise DpbenchError(f"synthetic:transformer is given {given}; expected heads to divide the width")

    def loss(model: nn.Module, batch: Any) -> Tensor:
        if workload.loss_chunk is None:
            return losses.language_model(model(batch["input_ids"]), batch["labels"])
        whole: Any = model
        inner = whole.get_base_model() if hasattr(whole, "get_base_model") else whole
        hidden = inner.hidden(batch["input_ids"])
        return losses.language_model_in_chunks(hidden, inner.head, batch["labels"], workload.loss_chunk)

    source = f"{depth} blocks of width {width}, {heads} heads, vocabulary {vocab}"
    return Task(Transformer(width, depth, heads, vocab, T), loss, sequences(T, vocab, shifted=True), "text", source, T)


def classify(model: nn.Module, batch: Any) -> Tensor:
    """Cross entropy of a classifier on ``x`` and ``y``."""
    return losses.cross_entropy(model(batch["x"]), batch["y"])


KINDS: dict[str, Callable[..., Task]] = {"mlp": mlp, "cnn": cnn, "transformer": transformer}

_WITHOUT = {
    "mlp": ("image_size", "attention", "loss_chunk"),
    "cnn": ("seq_len", "attention", "loss_chunk"),
    "transformer": ("image_size", "classes", "attention"),
}


def build(spec: Spec, workload: Workload) -> Task:
    """The network of that name."""
    if spec.name not in KINDS:
        raise unknown("synthetic model", spec.name, KINDS)
    kind = KINDS[spec.name]
    options = checked(spec, defaults(kind))
    spec.refuse(workload, *_WITHOUT[spec.name])
    spec.settle("depth", "layers", workload)
    return kind(workload, **options)
