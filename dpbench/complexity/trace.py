"""A trace: the operations and the memory of one step, by the module of the algorithm that they belong to."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dpbench.clipping import Clipping
from dpbench.complexity.flops import flops
from dpbench.gradient import SampleGradient
from dpbench.step import Training
from dpbench.tape import Tape

FORWARD, BACKWARD, NORM, INSTANTIATE, SUM, STORED, AGAIN = "1", "2a 2b", "3", "4", "2b", "5", "2a 2b again"
UPDATE = "update"
MODULES = {
    FORWARD: "forward",
    BACKWARD: "backward: output gradients and, where autograd forms them, parameter gradients",
    NORM: "ghost norms",
    INSTANTIATE: "per-sample gradients",
    SUM: "clipped sum of what was kept",
    STORED: "clipped sum of stored per-sample gradients",
    AGAIN: "second backward, of the reweighted losses",
    UPDATE: "noise, scaling and optimizer",
}
"""The paper's modules (Bu et al. 2023, table 1) as far as a trace tells them apart."""

_PLACES = (
    (SampleGradient, "squared_ghost_norm", NORM),
    (SampleGradient, "instantiate", INSTANTIATE),
    (SampleGradient, "weighted_sum", SUM),
    (Clipping, "weighted_sums", STORED),
    (Tape, "reweighted", AGAIN),
    (Training, "update", UPDATE),
)


@dataclass(slots=True)
class Trace:
    """FLOPs by module, and bytes above what was there before: at the peak, and in which module that was."""

    flops: Counter[str] = field(default_factory=Counter)
    peak: int = 0
    peak_in: str = FORWARD
    resident: int = 0
    """Bytes that were there before: parameters, buffers, batch, the optimizer's state."""

    @property
    def total(self) -> int:
        """All FLOPs."""
        return sum(self.flops.values())


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows every operator: its FLOPs, and the storages that are alive, whoever holds them."""

    def __init__(self, resident: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self.modules: list[str] = []
        self._live = 0
        self._known: set[int] = set()
        for tensor in resident:
            storage = tensor.untyped_storage()
            if storage._cdata not in self._known:
                self._known.add(storage._cdata)
                self.trace.resident += storage.nbytes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        module = self._module()
        if count := flops(func, args, kwargs, out):
            self.trace.flops[module] += count
        for tensor in pytree.tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._allocated(tensor, module)
        return out

    def _module(self) -> str:
        if self.modules:
            return self.modules[-1]
        return FORWARD if torch._C._current_graph_task_id() == -1 else BACKWARD

    def _allocated(self, tensor: Tensor, module: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = storage.nbytes()
        self._known.add(key)
        self._live += size
        if self._live > self.trace.peak:
            self.trace.peak, self.trace.peak_in = self._live, module
        weakref.finalize(storage, self._freed, key, size)

    def _freed(self, key: int, size: int) -> None:
        self._known.discard(key)
        self._live -= size


def traced(step: Callable[[], object], resident: Iterable[Tensor]) -> Trace:
    """The trace of one call; ``resident``: the tensors that are there before it."""
    meter = Meter(resident)
    with _labelled(meter.modules), meter:
        step()
    return meter.trace


@contextmanager
def _labelled(modules: list[str]) -> Iterator[None]:
    """Let the methods that are modules of the algorithms say so."""
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in _PLACES]
    for owner, name, module in _PLACES:
        setattr(owner, name, _saying(getattr(owner, name), module, modules))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _saying(method: Callable[..., Any], module: str, modules: list[str]) -> Callable[..., Any]:
    @wraps(method)
    def saying(*args: Any, **kwargs: Any) -> Any:
        modules.append(module)
        try:
            return method(*args, **kwargs)
        finally:
            modules.pop()

    return saying
