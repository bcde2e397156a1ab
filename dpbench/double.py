"""A float64 copy of a model and its losses, exact to the last digit, for checks of the gradient."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dpbench.batch import Batch
from dpbench.checkpoints import Lasting
from dpbench.interface import Losses

_CASTS = {Tensor.to, Tensor.type, Tensor.float}


def double(model: nn.Module, losses: Losses, batch: Batch) -> tuple[nn.Module, Losses, Batch]:
    """Copies of all three in float64.

    Many models cast to float32 inside (RMSNorm, softmax, rotary embeddings), where 1e-8 of every
    gradient would be lost; the losses run with those casts left out.
    """
    copied = copy.deepcopy(model).double()
    batch = pytree.tree_map_only(Tensor, lambda t: t.double() if t.is_floating_point() else t, batch)
    return copied, exact(losses), batch


def exact(losses: Losses) -> Losses:
    """The same losses, for a model in float64, with casts to a narrower type left out."""

    def in_double(model: nn.Module, batch: Batch) -> Tensor:
        with StayDouble():
            return losses(model, batch)

    return in_double


class StayDouble(Lasting):
    """Casts of float64 tensors to a narrower floating-point type give float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replace the target of the cast, and the ``dtype`` that reductions and softmax are asked for."""
        kwargs = dict(kwargs or {})
        if args and isinstance(args[0], Tensor) and args[0].dtype == torch.float64:
            if func is Tensor.float:
                func = Tensor.double
            elif func in _CASTS:
                args = (args[0], *(torch.float64 if _narrow(value) else value for value in args[1:]))
            if _narrow(kwargs.get("dtype")):
                kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


def _narrow(value: Any) -> bool:
    return isinstance(value, torch.dtype) and value.is_floating_point and value != torch.float64
