"""The layers that can be built alone, with the shapes of what they read.

Their default widths are those of the layer benchmarks of Opacus (pytorch/opacus, benchmarks/config.json), where
these have such a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn


def plain(layer: nn.Module, x: Tensor) -> Tensor:
    """The output of a layer that has one."""
    out: Tensor = layer(x)
    return out


def first_of_several(layer: nn.Module, *inputs: Tensor) -> Tensor:
    """The output of a layer that gives states or weights beside it."""
    out: Tensor = layer(*inputs)[0]
    return out


@dataclass(frozen=True, slots=True)
class Piece:
    """A layer, the shapes that one example has as its inputs, and how it is called with them."""

    layer: nn.Module
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Tensor] = plain
    ids: int = 0
    """Inputs are whole numbers below this; 0: they are normal numbers."""
    known: tuple[int, ...] = ()
    """The shape of one example's output, where the layer would take long to tell."""

    @property
    def output(self) -> torch.Size:
        """The shape of one example's output."""
        return torch.Size(self.known) if self.known else self.call(self.layer, *self.inputs(1)).shape[1:]

    def inputs(self, size: int, generator: Generator | None = None) -> list[Tensor]:
        """What the layer reads of so many examples."""
        if self.ids:
            return [torch.randint(self.ids, (size, *shape), generator=generator) for shape in self.shapes]
        return [torch.randn(size, *shape, generator=generator) for shape in self.shapes]


def linear(d: int = 512, p: int = 512, T: int | None = None, bias: bool = True) -> Piece:
    """A linear layer on (B, d), or with T on (B, T, d)."""
    return Piece(nn.Linear(d, p, bias), ((d,) if T is None else (T, d),))


def conv1d(
    d: int = 64, p: int = 64, kernel: int = 3, stride: int = 1, padding: int = 1, dilation: int = 1, groups: int = 1,
    T: int = 128, bias: bool = True,
) -> Piece:  # fmt: skip
    """A convolution of (B, d, T)."""
    return Piece(nn.Conv1d(d, p, kernel, stride, padding, dilation, groups, bias), ((d, T),))


def conv2d(
    d: int = 64, p: int = 64, kernel: int = 3, stride: int = 1, padding: int = 1, dilation: int = 1, groups: int = 1,
    px: int = 32, bias: bool = True,
) -> Piece:  # fmt: skip
    """A convolution of (B, d, px, px)."""
    return Piece(nn.Conv2d(d, p, kernel, stride, padding, dilation, groups, bias), ((d, px, px),))


def conv3d(
    d: int = 16, p: int = 16, kernel: int = 3, stride: int = 1, padding: int = 1, dilation: int = 1, groups: int = 1,
    T: int = 8, px: int = 16, bias: bool = True,
) -> Piece:  # fmt: skip
    """A convolution of T frames, (B, d, T, px, px)."""
    return Piece(nn.Conv3d(d, p, kernel, stride, padding, dilation, groups, bias), ((d, T, px, px),))


def conv_transpose2d(
    d: int = 64, p: int = 64, kernel: int = 4, stride: int = 2, padding: int = 1, groups: int = 1,
    px: int = 16, bias: bool = True,
) -> Piece:  # fmt: skip
    """A transposed convolution of (B, d, px, px)."""
    layer = nn.ConvTranspose2d(d, p, kernel, stride, padding, groups=groups, bias=bias)
    return Piece(layer, ((d, px, px),))


def layernorm(d: int = 64, T: int | None = None, bias: bool = True) -> Piece:
    """Layer norm of (B, d), or with T of (B, T, d)."""
    return Piece(nn.LayerNorm(d, bias=bias), ((d,) if T is None else (T, d),))


def groupnorm(d: int = 256, groups: int = 16, px: int = 8) -> Piece:
    """Group norm of (B, d, px, px)."""
    return Piece(nn.GroupNorm(groups, d), ((d, px, px),))


def instancenorm(d: int = 256, px: int = 8) -> Piece:
    """Instance norm of (B, d, px, px), with scale and shift, without running statistics."""
    return Piece(nn.InstanceNorm2d(d, affine=True), ((d, px, px),))


def embedding(V: int = 20_000, d: int = 100, T: int = 1) -> Piece:
    """A lookup of T ids for each example among V, of d numbers each."""
    return Piece(nn.Embedding(V, d), ((T,),), ids=V)


def embedding_bag(V: int = 20_000, d: int = 100, T: int = 16, mode: str = "mean") -> Piece:
    """The mean (or sum, or max) of the vectors of T ids."""
    return Piece(nn.EmbeddingBag(V, d, mode=mode), ((T,),), ids=V)


def mha(d: int = 100, heads: int = 4, T: int = 64, S: int | None = None, bias: bool = True) -> Piece:
    """Attention of (B, T, d) to itself, or with S to another sequence (B, S, d)."""
    layer = nn.MultiheadAttention(d, heads, bias=bias, batch_first=True)
    if S is None:
        return Piece(layer, ((T, d),), lambda layer, x: first_of_several(layer, x, x, x))
    return Piece(layer, ((T, d), (S, d)), lambda layer, x, other: first_of_several(layer, x, other, other))


def recurrent(kind: Callable[..., nn.Module], name: str) -> Callable[..., Piece]:
    """The function that builds layers of a kind."""

    def build(
        d: int = 100, p: int = 100, T: int = 128, layers: int = 1, bidirectional: bool = False, bias: bool = True
    ) -> Piece:
        layer = kind(d, p, layers, bias=bias, batch_first=True, bidirectional=bidirectional)
        # Without memory torch goes through the steps one by one.
        return Piece(layer, ((T, d),), first_of_several, known=(T, 2 * p if bidirectional else p))

    build.__doc__ = f"{name} on (B, T, d) with a state of p numbers."
    return build


KINDS: dict[str, Callable[..., Piece]] = {
    "linear": linear,
    "conv1d": conv1d,
    "conv2d": conv2d,
    "conv3d": conv3d,
    "conv_transpose2d": conv_transpose2d,
    "layernorm": layernorm,
    "groupnorm": groupnorm,
    "instancenorm": instancenorm,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "mha": mha,
    "rnn": recurrent(nn.RNN, "An Elman network"),
    "gru": recurrent(nn.GRU, "A GRU"),
    "lstm": recurrent(nn.LSTM, "An LSTM"),
}
