"""A CUDA device that is not there: tensors that say they are on it, compute on the CPU, and refuse to meet the CPU's.

What a real one would refuse (an index, a mask or a factor that was left on the CPU) is an error here, too. Use it in
a process of its own, since torch takes CUDA for initialised from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

torch._C._ensureCUDADeviceGuardSet()
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
aten = torch.ops.aten
_to, _tensor = Tensor.to, torch.tensor
MAY_MEET = {aten._to_copy, aten.copy_, aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
"""Operators that take tensors of two devices: copies, and indices on the CPU."""


class OnCuda(Tensor):
    """Wraps a tensor of the CPU, whose device C++ sees and Python does not."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    device = property(lambda self: CUDA)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor) -> OnCuda:
        made = Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.inner.tolist()

    def cpu(self) -> Tensor:  # type: ignore[override]
        return self.inner.clone()

    def numpy(self, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __repr__(self, **kwargs: Any) -> str:
        return f"OnCuda({self.inner!r})"


class Pretended(TorchDispatchMode):
    """Makes tensors that are asked for on CUDA."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the operator gives, on the device that its arguments are on, or that it is asked for."""
    given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    there = [isinstance(t, OnCuda) for t in given]
    apart = [t for t, is_there in zip(given, there, strict=True) if not is_there and t.ndim]
    if any(there) and apart and func._overloadpacket not in MAY_MEET:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: {func} got {[tuple(t.shape) for t in apart]} on the CPU"
        )
    asked = kwargs.get("device")
    # C++ knows no better than that all is on the CPU; who asks for that in Python asks in ``moved`` or ``cpu``.
    on_cuda = any(there) or (asked is not None and torch.device(asked).type == "cuda")
    if func._overloadpacket in MAY_MEET and asked is None:
        on_cuda = there[0]
    args_, kwargs_ = pytree.tree_map_only(OnCuda, lambda t: t.inner, (args, kwargs))
    if asked is not None:
        kwargs_["device"] = CPU if on_cuda else asked
    out = func(*args_, **kwargs_)
    if not on_cuda:
        return out
    out = pytree.tree_map_only(Tensor, lambda t: t if isinstance(t, OnCuda) else OnCuda(t), out)
    return return_and_correct_aliasing(func, args, kwargs, out) if any(there) else out


def moved(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``Tensor.to``, which knows where another tensor is and what is there already."""
    if args and isinstance(args[0], OnCuda):
        args = (CUDA, args[0].dtype, *args[1:])
    if isinstance(self, OnCuda) and args and args[0] in ("cpu", CPU):
        return self.cpu()
    return _to(self, *args, **kwargs)


def made(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
    """``torch.tensor``, which is no operator."""
    on_cpu = _tensor(data, **kwargs)
    return on_cpu if device is None or torch.device(device).type == "cpu" else _to(on_cpu, CUDA)


@contextmanager
def pretended() -> Iterator[torch.device]:
    """A context with one CUDA device, of compute capability 8.0."""
    # Else a module would put our tensors' data into its parameters, and lose what they are.
    swap = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    with (
        patch.multiple(
            torch.cuda,
            _lazy_init=lambda: None,
            device_count=lambda: 1,
            is_available=lambda: True,
            get_device_capability=lambda *_: (8, 0),
            is_bf16_supported=lambda *_: True,
            get_rng_state=lambda *_: torch.get_rng_state(),
            set_rng_state=lambda *_: None,
            get_rng_state_all=lambda: [torch.get_rng_state()],
            manual_seed_all=lambda seed: None,
            manual_seed=lambda seed: None,
        ),
        patch.object(Tensor, "to", moved),
        patch.object(torch, "tensor", made),
        Pretended(),
    ):
        try:
            yield CUDA
        finally:
            torch.__future__.set_swap_module_params_on_conversion(swap)
