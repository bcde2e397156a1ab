"""Opacus: one forward and backward of a wrapped model, and the clipping of its own optimizers.

Losses are one number per example, so ``loss_reduction`` is ``sum``; models are validated and
wrapped strictly (trainable layers with buffers are refused), as ``PrivacyEngine`` does. The optimizers are Opacus's
own with a noise multiplier of 0, and no step of theirs is taken. A batch without examples is not
shown to it.
Source: Yousefpour et al. 2021, 2109.12298; Li et al. 2022, 2110.05679 (ghost clipping).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, size
from dpbench.clipping import Clip
from dpbench.interface import Losses, Output, Supports
from dpbench.parameters import trainable
from implementations.peers.library import Library, given
from implementations.peers.threshold import Threshold
from implementations.peers.untouched import Untouched

OPACUS = Library("Opacus", "opacus", "pip install 'dpsgd-bench[peers]'")
STABILITY = 1e-6
"""In Opacus's clipping factor, min(1, R / (||g_i|| + 1e-6))."""
SUPPORTS = Supports()

Wrap = Callable[[nn.Module], Any]


class Wrapped:
    """What all steps of Opacus have in common; ``optimizer`` names one of ``opacus.optimizers``."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, wrap: Wrap, optimizer: str) -> None:
        OPACUS.load()
        OPACUS.refuse_other_clipping(clip, STABILITY)
        from opacus import optimizers
        from opacus.validators import ModuleValidator

        self._losses, self._parameters = losses, trainable(model)
        self._threshold = Threshold(clip.max_norm)
        self._untouched = Untouched(model)
        with OPACUS.refusing(), self._untouched:
            # As PrivacyEngine.make_private does before it wraps.
            ModuleValidator.validate(model, strict=True)
            self._module = wrap(model)
            self._optimizer: Any = getattr(optimizers, optimizer)(
                torch.optim.SGD(list(self._parameters.values()), lr=0.0),
                noise_multiplier=0.0,
                max_grad_norm=self._threshold,
                expected_batch_size=None,
                loss_reduction="sum",
            )

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """The clipped sum; rows that the mask leaves out have a loss of zero."""
        if size(batch) == 0:
            first = next(iter(self._parameters.values()))
            zeros: dict[str, Tensor | None] = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
            return given(self._parameters, zeros, first.new_zeros(0), first.new_zeros(0))
        for p in self._parameters.values():
            # Opacus zeroes gradients in place, and the last step's were given out.
            p.grad = None
        with OPACUS.refusing():
            losses = self._losses(self._module, batch)
            out = self._clipped(losses if mask is None else torch.where(mask, losses, torch.zeros_like(losses)))
        return replace(out, losses=losses.detach())

    def _clipped(self, losses: Tensor) -> Output:
        raise NotImplementedError

    def close(self) -> None:
        """Take off Opacus's hooks, and every attribute that was not there before."""
        self._module.to_standard_module()
        self._untouched.restore()


class Stored(Wrapped):
    """Per-sample gradients are stored and clipped by ``DPOptimizer``."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, wrap: Wrap) -> None:
        super().__init__(model, losses, clip, wrap, "DPOptimizer")

    def _clipped(self, losses: Tensor) -> Output:
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.clip_and_accumulate()
        sums = {name: p.summed_grad for name, p in self._parameters.items()}  # type: ignore[attr-defined]
        self._optimizer.zero_grad(set_to_none=True)
        return given(self._parameters, sums, self._threshold.norms(STABILITY), losses)


class Twice(Wrapped):
    """Norms in one backward, then a second one of the reweighted losses."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, *, ghost: bool) -> None:
        def wrap(model: nn.Module) -> Any:
            from opacus.grad_sample import GradSampleModuleFastGradientClipping

            return GradSampleModuleFastGradientClipping(
                model, loss_reduction="sum", max_grad_norm=clip.max_norm, use_ghost_clipping=ghost
            )

        super().__init__(model, losses, clip, wrap, "DPOptimizerFastGradientClipping")

    def _clipped(self, losses: Tensor) -> Output:
        from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

        DPTensorFastGradientClipping(self._module, self._optimizer, losses, "sum").backward()
        sums = {name: p.grad for name, p in self._parameters.items()}
        return given(self._parameters, sums, self._module.per_sample_gradient_norms, losses)
