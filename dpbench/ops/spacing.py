"""How closely spaced the numbers are that a function computes with: what its results may differ by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

TF32 = 2.0**-10
"""Of the numbers that tensor cores multiply in place of float32."""


def spacing(function: Callable[..., Any], out: Tensor) -> float:
    """Relative spacing of the numbers behind ``out``; on CUDA float32 may stand for TF32."""
    if out.dtype == torch.float32 and out.device.type == "cuda" and _in_tf32(function):
        return TF32
    return torch.finfo(out.dtype).eps


def _in_tf32(function: Callable[..., Any]) -> bool:
    """Whether torch may compute it so: for convolutions and fused recurrent layers it does unless told otherwise."""
    name, backends = getattr(function, "__name__", ""), torch.backends
    part: Any = backends.cuda.matmul
    legacy: Any = part
    if "conv" in name or name.startswith(("lstm", "gru", "rnn")):
        part, legacy = getattr(backends.cudnn, "conv" if "conv" in name else "rnn", None), backends.cudnn
    # Before torch 2.9 there is the older flag alone, which raises where both ways are mixed.
    told = getattr(part, "fp32_precision", None)
    return bool(legacy.allow_tf32) if told is None else told == "tf32"
