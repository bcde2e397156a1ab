"""Preparing an implementation for a model, and refusing what it was not made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from dpbench import refusals
from dpbench.batch import Batch, size
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import Losses, Output, Step, Supports, norm_methods
from dpbench.parameters import trainable
from dpbench.registry import load


def prepare(name: str, model: nn.Module, losses: Losses, clip: Clip | None = None) -> Step:
    """A step of implementation ``name`` (or of a file) for ``model``; the same for every batch size.

    Raises:
        DpbenchError: for an unknown name or a model without trainable parameters.
        Refused: if the implementation does not support the clipping style, or the model mixes examples.
    """
    clip = settled(name, clip or Clip())
    implementation = load(name)
    if clip.style != "flat" and not implementation.SUPPORTS.groups:
        raise Refused(
            f"{name} has one clipping factor per example, so it cannot clip in style {clip.style!r}; "
            "use style 'flat', or an implementation that books or stores gradients (bk, bk_mixopt, opacus)."
        )
    parameters = trainable(model)
    guarded = _Guarded(name, model, parameters, clip, implementation.SUPPORTS)
    guarded.step = implementation.prepare(model, losses, clip)
    return guarded


def settled(name: str, clip: Clip) -> Clip:
    """How implementation ``name`` clips: with its own stability constant where ``clip`` has none."""
    own = getattr(load(name), "STABILITY", 0.0)
    return replace(clip, stability=own) if clip.function == "abadi" and not clip.stability else clip


class _Guarded:
    """A step that is given nothing that its implementation cannot do."""

    step: Step

    def __init__(
        self, name: str, model: nn.Module, parameters: Mapping[str, nn.Parameter], clip: Clip, supports: Supports
    ) -> None:
        self._name, self._model, self._parameters = name, model, parameters
        self._clip, self._supports = clip, supports
        named = {f"{path} (a {type(module).__name__})": module for path, module in model.named_modules()}
        self._batch_norms = {
            which: module for which, module in named.items() if isinstance(module, nn.modules.batchnorm._BatchNorm)
        }
        self._writing = {which: module for which, module in named.items() if isinstance(module, _WRITING)}
        self._check_model()

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        if torch.is_inference_mode_enabled():
            raise Refused("no gradient can be taken under torch.inference_mode(). Leave it around the step.")
        self._check_model()
        if unit is not None:
            self._check_unit(unit, size(batch))
            self._check_numbers(unit)
        if mask is not None:
            _check_mask(mask, size(batch))
            mask = mask.to(next(iter(self._parameters.values())).device)
        with torch.enable_grad():
            out = self.step(batch, unit=unit, mask=mask)
        return out if out.norms is None else replace(out, clip=self._clip)

    def _check_model(self) -> None:
        """At every step: modes and parameters may have been changed since the last."""
        for which, module in self._batch_norms.items():
            if module.training:
                raise refusals.batch_norm(which)
        for which, writing in self._writing.items():
            if _writes(writing):
                raise refusals.writing(which)
        if any(p._backward_hooks or not p.requires_grad for p in self._parameters.values()):
            trainable(self._model)
            frozen = [name for name, p in self._parameters.items() if not p.requires_grad]
            raise DpbenchError(f"{', '.join(frozen)} are trained no longer. Prepare the step again after freezing.")

    def _check_unit(self, unit: Tensor, batch: int) -> None:
        if not self._supports.units:
            raise Refused(
                f"{self._name} clips each example by itself and cannot sum those of one unit before (its SUPPORTS "
                "says units=False); use bk, bk_mixopt, opacus, ghostclip or any other that dpbench ships with units."
            )
        _check_tensor("unit", unit)
        if unit.is_floating_point() or unit.dtype == torch.bool or unit.shape != (batch,) or (unit < 0).any():
            least = f", numbers from {unit.min().item()}" if unit.numel() else ""
            raise DpbenchError(
                f"unit has shape {tuple(unit.shape)} and dtype {unit.dtype}{least}; expected the number of each "
                f"example's unit, from 0, shape ({batch},), torch.int64"
            )

    @property
    def norm_methods(self) -> Mapping[str, str]:
        return norm_methods(self.step)

    def _check_numbers(self, unit: Tensor) -> None:
        if unit.numel() and (largest := int(unit.max())) >= MOST_UNITS:
            raise DpbenchError(
                f"unit holds the number {largest}; expected numbers below {MOST_UNITS:,}, since norms are given out by "
                "them. Number the units of the batch from 0: torch.unique(unit, return_inverse=True)[1]"
            )

    def close(self) -> None:
        self.step.close()


_WRITING = (nn.modules.instancenorm._InstanceNorm, nn.Embedding, nn.EmbeddingBag)


def _writes(module: nn.Module) -> bool:
    """Whether its forward keeps something of the examples in the model."""
    if isinstance(module, nn.modules.instancenorm._InstanceNorm):
        return module.training and module.track_running_stats
    return getattr(module, "max_norm", None) is not None


MOST_UNITS = 2**24
"""Norms are given out by the units' numbers, so that their largest is how many there are."""


def _check_mask(mask: Tensor, batch: int) -> None:
    _check_tensor("mask", mask)
    if mask.dtype != torch.bool or mask.shape != (batch,):
        raise DpbenchError(
            f"mask has shape {tuple(mask.shape)} and dtype {mask.dtype}; expected one truth value per example, "
            f"shape ({batch},), torch.bool"
        )


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise DpbenchError(f"{name} is a {type(value).__name__}; expected a tensor, (B,)")
