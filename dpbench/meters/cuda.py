"""Events and allocator peaks on a CUDA device."""

from __future__ import annotations

import gc
from typing import Any

import torch

from dpbench.meters.cpu import peak_process
from dpbench.meters.meter import Action


class CudaMeter:
    """``peak_allocated`` (tensors, above what was there before) and ``peak_reserved`` (all that torch took)."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._events: list[tuple[Any, Any]] = []

    def time(self, action: Action) -> None:
        """Put an event before and after it into the stream."""
        event: Any = torch.cuda.Event
        start, end = (event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream(self._device)
        start.record(stream)
        action()
        end.record(stream)
        self._events.append((start, end))

    def seconds(self) -> list[float]:
        """The times since the last call, after the one synchronize."""
        torch.cuda.synchronize(self._device)
        taken, self._events = self._events, []
        return [start.elapsed_time(end) / 1e3 for start, end in taken]

    def memory(self, action: Action) -> dict[str, float]:
        """The peaks of one run, reset before it."""
        gc.collect()
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        action()
        torch.cuda.synchronize(self._device)
        return {
            "peak_allocated": float(torch.cuda.max_memory_allocated(self._device) - before),
            "peak_reserved": float(torch.cuda.max_memory_reserved(self._device)),
            "peak_process": peak_process(),
        }
