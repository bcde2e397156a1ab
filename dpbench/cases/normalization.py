"""Norm layers, and norms of weights."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations

from dpbench.cases.case import case
from dpbench.cases.problem import Net, Problem, classified, vectors


def between(norm: nn.Module) -> nn.Module:
    """A norm layer between linear ones, on (B, d) or (B, T, d) with d = 6."""
    return nn.Sequential(nn.Linear(6, 6), norm, nn.Tanh(), nn.Linear(6, 3), nn.Flatten())


def on_images(norm: nn.Module) -> nn.Module:
    """A norm layer behind a convolution to four channels."""
    return Net(
        lambda m, x: m.head(m.norm(m.conv(x)).tanh().flatten(2).mean(2)),
        conv=nn.Conv2d(2, 4, 3), norm=norm, head=nn.Linear(4, 3),
    )  # fmt: skip


IMAGES = 5, 2, 5, 4


@case("opacus issue 578")
def layer_norm() -> Problem:
    """LayerNorm on a sequence: scale and shift sum over T."""
    return classified(between(nn.LayerNorm(6)), vectors(5, 4, 6))


@case("property")
def layer_norm_on_vectors() -> Problem:
    """LayerNorm on (B, d): no axis between the batch's and the last."""
    return classified(between(nn.LayerNorm(6)), vectors(5, 6))


@case("property")
def layer_norm_without_bias() -> Problem:
    """LayerNorm with a scale alone."""
    return classified(between(nn.LayerNorm(6, bias=False)), vectors(5, 4, 6))


@case("property")
def layer_norm_without_parameters() -> Problem:
    """LayerNorm without scale and shift has nothing to be trained, and is passed through."""
    return classified(between(nn.LayerNorm(6, elementwise_affine=False)), vectors(5, 4, 6))


@case("property")
def layer_norm_over_two_axes() -> Problem:
    """LayerNorm over (T, d): the scale is a matrix, and nothing is summed."""
    return classified(between(nn.LayerNorm((4, 6))), vectors(5, 4, 6))


@case("property")
def layer_norm_first() -> Problem:
    """LayerNorm as the first layer, whose input needs no gradient."""
    return classified(nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3), nn.Flatten()), vectors(5, 4, 6))


@case("ConvNeXt")
def layer_norm_on_channels() -> Problem:
    """LayerNorm over the channels of an image: they are moved to the end and back."""
    model = Net(
        lambda m, x: m.head(m.norm(m.conv(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2).tanh().mean((2, 3))),
        conv=nn.Conv2d(2, 4, 3), norm=nn.LayerNorm(4), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(*IMAGES))


@case("WideResNet in DP papers: De et al. 2022, 2204.13650")
def group_norm() -> Problem:
    """GroupNorm, what batch norm is replaced by."""
    return classified(on_images(nn.GroupNorm(2, 4)), vectors(*IMAGES))


@case("property")
def group_norm_on_vectors() -> Problem:
    """GroupNorm on (B, C): no positions to sum over."""
    return classified(between(nn.GroupNorm(2, 6)), vectors(5, 6))


@case("property")
def instance_norm_one_axis() -> Problem:
    """InstanceNorm1d with scale and shift; inside it batch and channels become one axis."""
    return classified(
        nn.Sequential(nn.Conv1d(3, 4, 2), nn.InstanceNorm1d(4, affine=True), nn.Flatten()), vectors(5, 3, 6)
    )


@case("property")
def instance_norm_two_axes() -> Problem:
    """InstanceNorm2d with scale and shift."""
    return classified(on_images(nn.InstanceNorm2d(4, affine=True)), vectors(*IMAGES))


@case("property")
def instance_norm_without_parameters() -> Problem:
    """InstanceNorm2d without scale and shift, between layers that have some."""
    return classified(on_images(nn.InstanceNorm2d(4)), vectors(*IMAGES))


@case("pytorch issue 58843", refused="the forward keeps statistics of the examples in buffers, which no noise covers")
def instance_norm_tracking() -> Problem:
    """InstanceNorm with track_running_stats keeps the batch's statistics, though it normalises without them."""
    return classified(on_images(nn.InstanceNorm2d(4, affine=True, track_running_stats=True)), vectors(*IMAGES))


@case("LLaMA: Touvron et al. 2023, 2302.13971")
def rms_norm() -> Problem:
    """RMSNorm of the library: one call, no mean."""
    return classified(between(nn.RMSNorm(6)), vectors(5, 4, 6))


@case("T5: Raffel et al. 2019, 1910.10683")
def rms_norm_by_hand() -> Problem:
    """The norm of T5: arithmetic, and a product with a bare parameter."""
    norm = Net(
        lambda m, x: m.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)), weight=torch.rand(6)
    )
    return classified(between(norm), vectors(5, 4, 6))


@case("property")
def batch_norm_in_eval() -> Problem:
    """BatchNorm with fixed statistics is a scale and a shift of each channel."""
    norm = nn.BatchNorm2d(4).eval()
    assert norm.running_mean is not None
    norm.running_mean.copy_(vectors(4))
    return classified(on_images(norm), vectors(*IMAGES))


@case("opacus issue 319", refused="mixes examples: the statistics are the batch's")
def batch_norm() -> Problem:
    """BatchNorm in training mode normalises by the statistics of the batch."""
    return classified(on_images(nn.BatchNorm2d(4)), vectors(*IMAGES))


@case("property", refused="mixes examples: the statistics are the batch's")
def batch_norm_in_eval_without_statistics() -> Problem:
    """BatchNorm without running statistics takes the batch's in eval mode, too."""
    return classified(on_images(nn.BatchNorm2d(4, track_running_stats=False).eval()), vectors(*IMAGES))


@case("property", refused="mixes examples: the mean is the batch's")
def batch_norm_by_hand() -> Problem:
    """A mean over the batch axis is subtracted, with no module that a list of types would know."""
    model = Net(lambda m, x: m.head((m.a(x) - m.a(x).mean(0)).tanh()), a=nn.Linear(6, 5), head=nn.Linear(5, 3))
    return classified(model, vectors(5, 6))


@case("property")
def used_twice() -> Problem:
    """One LayerNorm before and after a layer: its gradient has two shares, and its norm a cross term."""
    model = Net(
        lambda m, x: m.head(m.norm(m.a(m.norm(x)))).mean(1),
        norm=nn.LayerNorm(6),
        a=nn.Linear(6, 6),
        head=nn.Linear(6, 3),
    )
    return classified(model, vectors(5, 4, 6))


@case("opacus issue 462")
def layer_scale() -> Problem:
    """LayerScale: a bare parameter times a residual branch."""
    model = Net(
        lambda m, x: m.head(x + m.scale * m.a(x).tanh()).mean(1),
        a=nn.Linear(6, 6),
        scale=torch.rand(6),
        head=nn.Linear(6, 3),
    )
    return classified(model, vectors(5, 4, 6))


@case("ConvNeXt")
def layer_scale_on_channels() -> Problem:
    """LayerScale on images: a parameter reshaped to (1, C, 1, 1)."""
    return classified(
        on_images(Net(lambda m, x: x.tanh() * m.scale.view(1, -1, 1, 1) + x, scale=torch.rand(4))), vectors(*IMAGES)
    )


@case("weight normalization: Salimans and Kingma 2016, 1602.07868")
def weight_norm() -> Problem:
    """The weight is computed from a direction and a length, which are the parameters."""
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(6, 5)), nn.Tanh(), nn.Linear(5, 3), nn.Flatten())
    return classified(model, vectors(5, 4, 6))


@case("opacus issue 646")
def spectral_norm_in_eval() -> Problem:
    """The weight is divided by its largest singular value, along vectors that are fixed in eval mode."""
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 5)), nn.Tanh(), nn.Linear(5, 3), nn.Flatten())
    return classified(model.eval(), vectors(5, 4, 6))


@case("opacus issue 646")
def spectral_norm_in_training() -> Problem:
    """Each forward improves the vectors in their buffers, here until they have converged, from the weight alone."""
    linear = nn.Linear(6, 5)
    with torch.no_grad():
        # One singular value far above the others, so that 30 iterations find it to the last digit.
        linear.weight.mul_(0.1).add_(torch.outer(torch.ones(5), torch.ones(6)))
    model = nn.Sequential(
        parametrizations.spectral_norm(linear, n_power_iterations=30), nn.Tanh(), nn.Linear(5, 3), nn.Flatten()
    )
    return classified(model, vectors(5, 4, 6))
