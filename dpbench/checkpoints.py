"""Activation checkpointing: what holds around a forward has to hold when a part of it is computed again.

A checkpoint computes its forward a second time inside the backward, when the modes that the losses ran
under are gone, and a backward on a GPU runs in a thread that never had them. Checkpoints that are made
here, and those whose ``context_fn`` is :func:`contexts`, enter them again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import checkpoint as library


class Lasting(TorchFunctionMode):
    """A mode that changes what is computed, and so holds in a recomputation, too."""

    kept = 0
    """How many of the checkpoints that are running will enter it again."""

    def is_forgotten(self) -> bool:
        """Whether what is computed now will be computed again without this mode, by someone else's checkpoint."""
        return not self.kept and inside()


def contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """The ``context_fn`` of a checkpoint: its lasting modes, told in the forward and entered again."""
    stack = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    modes = [mode for mode in stack if isinstance(mode, Lasting)]
    return _Kept(modes), _Again(modes)


class _Kept:
    """Tells the modes that they will be entered again."""

    def __init__(self, modes: list[Lasting]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        for mode in self._modes:
            mode.kept += 1

    def __exit__(self, *exception: Any) -> None:
        for mode in self._modes:
            mode.kept -= 1


class _Again(_Kept):
    """Enters the modes; a checkpoint does so each time that it computes again."""

    def __enter__(self) -> None:
        super().__enter__()
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *exception: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*exception)  # type: ignore[no-untyped-call]
        super().__exit__(*exception)


def checkpointed(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, of which the backward computes the activations again; nothing in it may be random."""
    return library.checkpoint(function, *args, use_reentrant=False, context_fn=contexts, preserve_rng_state=False)


def inside() -> bool:
    """Whether the forward that is running belongs to a checkpoint, which will compute it again."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    return hooks is not None and getattr(hooks[0], "__module__", "") == library.__name__


def reentrant() -> bool:
    """Whether the forward that is running is inside of a reentrant checkpoint; looks at who called whom."""
    code = library.CheckpointFunction.forward.__code__
    frame = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
