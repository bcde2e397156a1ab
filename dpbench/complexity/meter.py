"""The meter of traces: every operator of one step, and the storages that are alive, whoever holds them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from dpbench.complexity.flops import flops
from dpbench.complexity.places import Place, Places
from dpbench.complexity.trace import Operation, Trace
from dpbench.complexity.traffic import halves, tensors, traffic

BACKWARD_OF_CONVOLUTION = torch.ops.aten.convolution_backward


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Use as a context around one step; ``trace`` gives what was seen."""

    def __init__(self, resident: Iterable[Tensor], places: Places) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._places = places
        self._seen: Counter[tuple[str, Place, str, int, int]] = Counter()
        self._events: list[tuple[int, Place]] = []
        self._live = self._peak = self._resident = 0
        self._until = 0
        """The number of events up to the peak."""
        self._peaks: dict[str, int] = {}
        self._known: set[int] = set()
        for tensor in resident:
            storage = tensor.untyped_storage()
            if storage._cdata not in self._known:
                self._known.add(storage._cdata)
                self._resident += storage.nbytes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        made = tensors(out)
        if func.is_view or not (made or func._schema.is_mutable):
            return out
        given = [*tensors(args), *tensors(kwargs)]
        if func._overloadpacket is BACKWARD_OF_CONVOLUTION:
            # One operator, two kernels: what reads the weight is not what reads the input.
            ds, x, weight, *rest, wanted = args
            for mask in halves(wanted):
                operands, kept = ([ds, weight], made[:1]) if mask[0] else ([ds, x], made[1:] if wanted[0] else made)
                self._record(func, (ds, x, weight, *rest, mask), kwargs, kept, operands)
        else:
            self._record(func, args, kwargs, made, given, out)
        return out

    def _record(
        self, func: Any, args: Any, kwargs: Any, made: list[Tensor], given: list[Tensor], out: Any = None
    ) -> None:
        count = flops(func, args, kwargs, made if out is None else out)
        place = self._places.of(given, made, count)
        moved = traffic(func, given if out is None else args, {} if out is None else kwargs, given, made)
        if count or moved:
            dtype = next((t.dtype for t in given if t.is_floating_point()), torch.float32)
            self._seen[str(func._overloadpacket), place, str(dtype).removeprefix("torch."), count, moved] += 1
        for tensor in made:
            self._allocated(tensor, place)

    def _allocated(self, tensor: Tensor, place: Place) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = storage.nbytes()
        self._known.add(key)
        self._live += size
        self._events.append((size, place))
        if self._live > self._peaks.get(place.module, 0):
            self._peaks[place.module] = self._live
            if self._live > self._peak:
                self._peak, self._until = self._live, len(self._events)
        weakref.finalize(storage, self._freed, key, size, place)

    def _freed(self, key: int, size: int, place: Place) -> None:
        self._known.discard(key)
        self._places.forget(key)
        self._live -= size
        self._events.append((-size, place))

    @property
    def trace(self) -> Trace:
        """What was seen until now."""
        operations = tuple(
            Operation(name, place.module, place.parameter, place.within, dtype, n, n * count, n * moved)
            for (name, place, dtype, count, moved), n in self._seen.items()
        )
        alive: Counter[str] = Counter()
        for size, place in self._events[: self._until]:
            alive[place.label] += size
        return Trace(operations, dict(self._peaks), {k: v for k, v in alive.most_common() if v}, self._resident)


def traced(step: Callable[[], object], resident: Iterable[Tensor], model: nn.Module | None = None) -> Trace:
    """The trace of one call; ``resident``: the tensors that are there before it; ``model``: who it trains."""
    parameters: Mapping[str, Tensor] = dict(model.named_parameters()) if model else {}
    places = Places(parameters, {id(m): name for name, m in model.named_modules()} if model else {})
    meter = Meter(resident, places)
    with places.watched(), meter:
        step()
    return meter.trace
