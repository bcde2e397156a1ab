"""Precisions: what is cast, what is autocast, and what a device lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dpbench.batch import Batch
from dpbench.errors import DpbenchError, unknown
from dpbench.interface import Losses

PRECISIONS = {
    "fp32": "float32 throughout, TF32 off",
    "tf32": "float32 with TF32 products (CUDA, compute capability 8.0 and newer)",
    "bf16": "parameters and activations in bfloat16",
    "amp-bf16": "float32 parameters, forward under torch.autocast to bfloat16",
}

EPSILONS = {"fp32": 2.0**-23, "tf32": 2.0**-10, "bf16": 2.0**-7, "amp-bf16": 2.0**-7}
"""The spacing of the numbers that products are computed with."""


def check_device(device: str) -> torch.device:
    """The device of that name; ``cuda`` alone is the first, with its number, which not all of torch does without.

    Raises:
        DpbenchError: there is none.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        raise unknown("device", device, devices(), "See: dpbench list devices") from None
    if found.type not in ("cpu", "cuda"):
        raise DpbenchError(f"device {device} cannot be measured; expected cpu or cuda. See: dpbench list devices")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise DpbenchError(
            f"device {device} is not there; this machine has {', '.join(devices())}. "
            "Choose one of them with --device, or install a torch that is built for your GPU."
        )
    if found.type == "cpu" and found.index:
        raise DpbenchError(f"device {device} is not there; the CPU is one device, called cpu")
    return torch.device("cuda", found.index or 0) if found.type == "cuda" else found


def devices() -> list[str]:
    """The names of the devices of this machine."""
    return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def check_precision(precision: str, device: torch.device) -> None:
    """Raise unless ``device`` has it.

    Raises:
        DpbenchError: an unknown precision, or one that the device lacks.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if precision == "tf32":
        if device.type != "cuda":
            raise DpbenchError(f"precision tf32 needs a CUDA device, got {device.type}; use fp32 there")
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:
            raise DpbenchError(
                f"precision tf32 needs compute capability 8.0, {device} has {major}.{minor}; use fp32 there"
            )
    if "bf16" in precision and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise DpbenchError(f"precision {precision} needs bfloat16, which {device} lacks; use fp32 there")


def apply(precision: str, model: nn.Module, losses: Losses, batch: Batch) -> tuple[nn.Module, Losses, Batch]:
    """Model, losses and batch in a precision; the model is changed in place, flags of the process set.

    ``bf16`` casts parameters, buffers and the floating-point tensors of the batch; integers and truth
    values stay. Losses come back in float32, as a bfloat16 loss keeps three digits.
    """
    allow_tf32(precision == "tf32")
    if precision == "bf16":
        return cast(precision, model), _float32(losses), _cast(batch, torch.bfloat16)
    if precision == "amp-bf16":
        kind = next(model.parameters()).device.type
        return model, _autocast(losses, kind), batch
    return model, losses, batch


def allow_tf32(allowed: bool) -> None:
    """Whether products and convolutions of float32 on CUDA may be computed in TF32, whatever was set before.

    Since torch 2.9 there are two ways to say it. The older alone leaves convolutions to the newer one's default,
    and who set that by the newer alone cannot read the older.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    for owner, name in ((torch.backends.cuda, "matmul"), (torch.backends.cudnn, "conv"), (torch.backends.cudnn, "rnn")):
        part: Any = getattr(owner, name, None)
        if hasattr(part, "fp32_precision"):
            part.fp32_precision = "tf32" if allowed else "ieee"


def cast(precision: str, model: nn.Module) -> nn.Module:
    """The model with parameters of that precision; one that has them already is left alone."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    wrong = precision == "bf16" and any(t.dtype != torch.bfloat16 for t in tensors)
    return model.to(torch.bfloat16) if wrong else model


def _cast(batch: Batch, dtype: torch.dtype) -> Any:
    return pytree.tree_map_only(Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, batch)


def _float32(losses: Losses) -> Losses:
    def widened(model: nn.Module, batch: Batch) -> Tensor:
        return losses(model, batch).float()

    return widened


def _autocast(losses: Losses, kind: str) -> Callable[[nn.Module, Batch], Tensor]:
    def under_autocast(model: nn.Module, batch: Batch) -> Tensor:
        # Its cache of cast weights would keep the graph of one step alive into the next.
        with torch.autocast(kind, dtype=torch.bfloat16, cache_enabled=False):
            return losses(model, batch).float()

    return under_autocast
