"""fastDP: book-keeping by hooks that clip within the one backward.

Losses are one number per example, so ``loss_reduction`` is ``sum``. ``origin_params`` is left at its
default, so that the useless gradient of the first backward is formed. The clipped sums are taken
from ``private_grad``, to which fastDP adds noise, here of standard deviation 0. What the engine prints
is not shown, and a batch without examples is not shown to it. Parameters of layers that it has no
rule for get no gradient.
Source: Bu et al. 2023, 2210.00038.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, size
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.interface import Losses, Output, Supports
from dpbench.parameters import trainable
from implementations.peers.library import Library, given
from implementations.peers.threshold import Threshold
from implementations.peers.untouched import Untouched

FASTDP = Library("fastDP", "fastDP", "pip install git+https://github.com/awslabs/fast-differential-privacy")
"""It is on no index."""
STABILITY = 1e-6
"""The default of ``numerical_stability_constant`` in fastDP's clipping factor, min(1, R / (||g_i|| + 1e-6))."""
SUPPORTS = Supports()
FUNCTIONS = {"abadi": "Abadi", "automatic": "automatic"}
"""Its names of clipping functions."""


class Engine:
    """One backward under a ``PrivacyEngine`` in one of its clipping modes."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, mode: str) -> None:
        library = FASTDP.load()
        if clip.function not in FUNCTIONS:
            raise Refused(f"fastDP has no clipping function {clip.function!r}; use {' or '.join(FUNCTIONS)}.")
        self._model, self._losses, self._parameters = model, losses, trainable(model)
        self._threshold, self._stability = Threshold(clip.max_norm), clip.stability or 0.0
        self._untouched = Untouched(model)
        with FASTDP.refusing(), self._untouched, redirect_stdout(io.StringIO()):
            self._engine: Any = library.PrivacyEngine(
                model,
                batch_size=1,
                sample_size=1,
                num_steps=1,
                noise_multiplier=0.0,
                max_grad_norm=self._threshold,
                numerical_stability_constant=self._stability,
                clipping_mode=mode,
                clipping_fn=FUNCTIONS[clip.function],
                clipping_style="all-layer",
                loss_reduction="sum",
            )
            self._engine.attach(torch.optim.SGD(list(self._parameters.values()), lr=0.0))

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """The clipped sum; rows that the mask leaves out have a loss of zero."""
        if size(batch) == 0:
            first = next(iter(self._parameters.values()))
            zeros: dict[str, Tensor | None] = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
            return given(self._parameters, zeros, first.new_zeros(0), first.new_zeros(0))
        with FASTDP.refusing(), redirect_stdout(io.StringIO()):
            losses = self._losses(self._model, batch)
            kept = losses if mask is None else torch.where(mask, losses, torch.zeros_like(losses))
            kept.sum().backward()  # type: ignore[no-untyped-call]
        sums = {name: vars(p).pop("private_grad", None) for name, p in self._parameters.items()}
        return given(self._parameters, sums, self._threshold.norms(self._stability), losses)

    def close(self) -> None:
        """Take off its hooks, and every attribute that was not there before."""
        self._engine.detach()
        self._untouched.restore()
