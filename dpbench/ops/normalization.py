"""Norm layers: ``s = weight * normalized(x) + bias`` along the channel axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench import refusals
from dpbench.errors import Refused
from dpbench.ops.call import Call
from dpbench.ops.kept import Kept
from dpbench.ops.use import Use
from dpbench.ops.vector import Shift, reduce_to


class Scale(Use):
    """The scale of a norm layer: ``g_i = sum_t ds_it * normalized(x_i)_t``."""

    def __init__(
        self, weight: Tensor, x: Tensor, axes: Sequence[int], normalize: Callable[[Tensor], Tensor], what: str
    ) -> None:
        self.parameter = weight
        self._axes = axes
        self._x = Kept(x, what)
        self._normalize = normalize

    def instantiate(self, ds: Tensor) -> Tensor:
        """Normalises again rather than keeping a second activation."""
        x = self._x.get()
        # CUDA's autocast computes norms of a bfloat16 input in float32.
        wide = torch.promote_types(x.dtype, ds.dtype)
        return reduce_to(ds * self._normalize(x.to(wide)).to(ds.dtype), self._axes, self.parameter.shape)


def _scale_and_shift(
    call: Call, axes: Sequence[int], normalize: Callable[[Tensor], Tensor], what: str
) -> list[Use] | None:
    weight, bias = call.arguments["weight"], call.arguments.get("bias")
    if call.is_parameter("input"):
        return None
    uses: list[Use] = []
    if weight is not None and call.is_parameter("weight"):
        uses.append(Scale(weight, call.batch_first("input"), axes, normalize, what))
    if bias is not None and call.is_parameter("bias"):
        uses.append(Shift(bias, axes=axes))
    return uses


class LayerNorm:
    """``F.layer_norm`` over the last axes."""

    functions: ClassVar[Sequence[Any]] = (F.layer_norm,)
    signature: ClassVar[str] = "input, normalized_shape, weight=None, bias=None, eps=1e-5"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """Scale and shift along the normalised axes."""
        shape, eps = call.arguments["normalized_shape"], call.arguments["eps"]
        axes = range(-len(shape), 0)
        return _scale_and_shift(call, axes, lambda x: F.layer_norm(x, shape, eps=eps), "F.layer_norm")


class RMSNorm:
    """``F.rms_norm`` over the last axes."""

    functions: ClassVar[Sequence[Any]] = (F.rms_norm,)
    signature: ClassVar[str] = "input, normalized_shape, weight=None, eps=None"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """A scale along the normalised axes."""
        shape, eps = call.arguments["normalized_shape"], call.arguments["eps"]
        axes = range(-len(shape), 0)
        return _scale_and_shift(call, axes, lambda x: F.rms_norm(x, shape, eps=eps), "F.rms_norm")


class GroupNorm:
    """``F.group_norm`` over groups of channels, the channels on axis 1."""

    functions: ClassVar[Sequence[Any]] = (F.group_norm,)
    signature: ClassVar[str] = "input, num_groups, weight=None, bias=None, eps=1e-5"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """Scale and shift along the channels."""
        if not _channels_second(call):
            return None
        groups, eps = call.arguments["num_groups"], call.arguments["eps"]
        return _scale_and_shift(call, (1,), lambda x: F.group_norm(x, groups, eps=eps), "F.group_norm")


class InstanceNorm:
    """``F.instance_norm`` of each channel of each example."""

    functions: ClassVar[Sequence[Any]] = (F.instance_norm,)
    signature: ClassVar[str] = (
        "input, running_mean=None, running_var=None, weight=None, bias=None, "
        "use_input_stats=True, momentum=0.1, eps=1e-5"
    )

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """Scale and shift along the channels; running statistics are refused, as they mix examples."""
        if not call.arguments["use_input_stats"] or not _channels_second(call):
            return None
        if call.arguments["running_mean"] is not None:
            raise Refused(
                "F.instance_norm keeps running statistics, which mix the examples of all batches. "
                "Build it with track_running_stats=False."
            )
        eps = call.arguments["eps"]
        return _scale_and_shift(call, (1,), lambda x: F.instance_norm(x, eps=eps), "F.instance_norm")


class BatchNorm:
    """``F.batch_norm`` with fixed statistics; in training mode it mixes examples and is refused."""

    functions: ClassVar[Sequence[Any]] = (F.batch_norm,)
    signature: ClassVar[str] = (
        "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5"
    )

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """Scale and shift along the channels."""
        if call.arguments["training"]:
            raise refusals.batch_norm("F.batch_norm")
        if not _channels_second(call):
            return None
        mean, var, eps = (call.arguments[k] for k in ("running_mean", "running_var", "eps"))
        return _scale_and_shift(call, (1,), lambda x: F.batch_norm(x, mean, var, eps=eps), "F.batch_norm")


def _channels_second(call: Call) -> bool:
    layout = call.layouts.get("input")
    return layout is not None and layout.axis == 0 and layout.rows == 1
