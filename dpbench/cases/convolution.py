"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, vectors


def pooled(*layers: nn.Module, channels: int) -> nn.Module:
    """Layers on (B, C, ...), their mean over all positions, and three classes."""
    return Net(
        lambda m, x: m.head(m.body(x).flatten(2).mean(2)), body=nn.Sequential(*layers), head=nn.Linear(channels, 3)
    )


@case("property")
def one_axis() -> Problem:
    """Conv1d, with and without bias."""
    return classified(
        pooled(nn.Conv1d(3, 4, 3), nn.Tanh(), nn.Conv1d(4, 2, 2, bias=False), channels=2), vectors(5, 3, 7)
    )


@case("property")
def two_axes() -> Problem:
    """Conv2d, on images that are higher than wide and kernels that are wider than high."""
    return classified(
        pooled(nn.Conv2d(2, 4, (2, 3)), nn.Tanh(), nn.Conv2d(4, 2, (1, 2)), channels=2), vectors(5, 2, 7, 5)
    )


@case("property")
def three_axes() -> Problem:
    """Conv3d on a volume with three different sides."""
    return classified(pooled(nn.Conv3d(2, 3, (2, 1, 2)), nn.Tanh(), channels=3), vectors(5, 2, 3, 4, 5))


@case("opacus issue 1")
def stride_and_padding() -> Problem:
    """Stride and padding, other ones in each direction: an unfold without them has other rows."""
    layers = nn.Conv2d(2, 4, 3, stride=(2, 1), padding=(1, 2)), nn.Tanh()
    return classified(pooled(*layers, channels=4), vectors(5, 2, 7, 5))


@case("opacus pull request 245")
def stride_that_leaves_a_rest() -> Problem:
    """Kernel 3, stride 2, side 6: the last column is never read, and a gradient by convolution is too large."""
    return classified(pooled(nn.Conv2d(2, 4, 3, stride=2), nn.Tanh(), channels=4), vectors(5, 2, 6, 6))


@case("opacus issue 137")
def dilation() -> Problem:
    """A kernel with gaps."""
    return classified(pooled(nn.Conv2d(2, 4, 3, dilation=(2, 1)), nn.Tanh(), channels=4), vectors(5, 2, 7, 5))


@case("property")
def groups() -> Problem:
    """Two groups of channels: the weight has d / 2 input channels."""
    return classified(pooled(nn.Conv2d(4, 6, 3, groups=2), nn.Tanh(), channels=6), vectors(5, 4, 5, 5))


@case("ConvNeXt")
def depthwise() -> Problem:
    """As many groups as channels, and two outputs for each of them."""
    layers = nn.Conv2d(3, 6, 3, padding=1, groups=3), nn.Tanh(), nn.Conv2d(6, 6, 3, groups=6)
    return classified(pooled(*layers, channels=6), vectors(5, 3, 4, 5))


@case("opacus pull request 451")
def same() -> Problem:
    """padding="same" with an even kernel pads one side more than the other."""
    layers = nn.Conv2d(2, 4, (2, 3), padding="same"), nn.Tanh(), nn.Conv2d(4, 2, 4, padding="same", dilation=3)
    return classified(pooled(*layers, channels=2), vectors(5, 2, 5, 4))


@case("opacus pull request 451")
def valid() -> Problem:
    """padding="valid" is a text where a number is expected."""
    return classified(pooled(nn.Conv1d(3, 4, 3, padding="valid"), nn.Tanh(), channels=4), vectors(5, 3, 7))


@case("property")
def circular() -> Problem:
    """The module pads around the border, and then calls a convolution without padding."""
    layers = nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), nn.Tanh()
    return classified(pooled(*layers, channels=4), vectors(5, 2, 5, 4))


@case("property")
def reflect() -> Problem:
    """The module pads with its own pixels, other widths in each direction."""
    layers = nn.Conv2d(2, 4, 3, padding=(2, 1), padding_mode="reflect"), nn.Tanh()
    return classified(pooled(*layers, channels=4), vectors(5, 2, 5, 4))


@case("property")
def channels_last() -> Problem:
    """Input and weights in the memory format channels_last, where a view of the wrong axes goes through."""
    model = pooled(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 2), channels=4)
    x = vectors(5, 3, 5, 4).to(memory_format=torch.channels_last)
    return classified(model.to(memory_format=torch.channels_last), x)


@case("ResNet: He et al. 2015, 1512.03385")
def one_by_one() -> Problem:
    """A kernel of one pixel, with the stride of a shortcut, is a linear layer on some of the pixels."""
    return classified(pooled(nn.Conv2d(3, 4, 1, stride=2, bias=False), nn.Tanh(), channels=4), vectors(5, 3, 5, 4))


@case("property")
def stride_larger_than_kernel() -> Problem:
    """Pixels between the windows are never read."""
    return classified(pooled(nn.Conv2d(2, 4, 2, stride=3), nn.Tanh(), channels=4), vectors(5, 2, 8, 7))


@case("ViT")
def patches() -> Problem:
    """Kernel = stride: patches, flattened to a sequence."""
    model = Net(
        lambda m, x: m.head(m.norm(m.patch(x).flatten(2).transpose(1, 2)).mean(1)),
        patch=nn.Conv2d(3, 6, 2, 2), norm=nn.LayerNorm(6), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 3, 4, 6))


@case("property")
def kernel_as_large_as_the_image() -> Problem:
    """One output position: a linear layer on the whole image, T = 1."""
    return classified(
        nn.Sequential(nn.Conv2d(2, 5, (4, 3)), nn.Tanh(), nn.Flatten(), nn.Linear(5, 3)), vectors(5, 2, 4, 3)
    )


class Standardised(nn.Conv2d):
    """A convolution whose kernels have mean zero and variance one (Qiao et al. 2019, 1903.10520)."""

    def forward(self, x: Tensor) -> Tensor:
        """Standardise, then convolve."""
        w = self.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.var((1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return F.conv2d(x, w, self.bias, self.stride, self.padding)


@case("WideResNet in DP papers: De et al. 2022, 2204.13650")
def standardised() -> Problem:
    """A weight computed from the parameter, no longer the parameter itself, and group norm after it."""
    layers: tuple[Any, ...] = Standardised(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), Standardised(4, 4, 3, 2)
    return classified(pooled(*layers, channels=4), vectors(5, 2, 6, 5))


@case("property")
def folded() -> Problem:
    """Frames of a video folded into the batch axis: (B T, C, H, W), and axis 0 is no longer the batch."""
    model = Net(
        lambda m, x: m.head(m.conv(x.flatten(0, 1)).tanh().mean((2, 3)).view(len(x), -1, 4).mean(1)),
        conv=nn.Conv2d(2, 4, 3), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 3, 2, 4, 5))


@case("property")
def folded_across() -> Problem:
    """Frames folded with time first: (T B, C, H, W), so that an example's rows are not beside each other."""
    model = Net(
        lambda m, x: m.head(m.conv(x.transpose(0, 1).flatten(0, 1)).tanh().mean((2, 3)).view(-1, len(x), 4).mean(0)),
        conv=nn.Conv2d(2, 4, 3), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 3, 2, 4, 5))


@case("property")
def transposed_one_axis() -> Problem:
    """ConvTranspose1d, whose weight has its input channels first."""
    layers = nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.Tanh()
    return classified(pooled(*layers, channels=4), vectors(5, 3, 5))


@case("property")
def transposed_two_axes() -> Problem:
    """ConvTranspose2d with groups, and other strides in each direction."""
    layers = nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), output_padding=(1, 2), groups=2), nn.Tanh()
    return classified(pooled(*layers, channels=6), vectors(5, 4, 3, 2))


@case("property")
def transposed_three_axes() -> Problem:
    """ConvTranspose3d with dilation."""
    layers = nn.ConvTranspose3d(2, 3, (1, 2, 2), stride=(1, 2, 1), dilation=(1, 2, 1)), nn.Tanh()
    return classified(pooled(*layers, channels=3), vectors(5, 2, 2, 3, 2))


@case("property")
def several_sizes() -> Problem:
    """Images of other sizes in each batch: nothing may be kept of the first one's."""
    model = pooled(nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.Conv2d(4, 4, 3, stride=2), channels=4)
    return classified(model, vectors(5, 2, 5, 4), vectors(5, 2, 7, 6, seed=1), vectors(3, 2, 4, 7, seed=2))
