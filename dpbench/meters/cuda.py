"""Events and allocator peaks on a CUDA device."""

from __future__ import annotations

import gc
from time import time
from typing import Any

import torch

from dpbench.meters.cpu import peak_process
from dpbench.meters.meter import Action, Sample


class CudaMeter:
    """``peak_allocated`` (tensors, above what was there before) and ``peak_reserved`` (all that torch took)."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._events: list[tuple[Any, Any]] = []
        self._since = 0.0

    def time(self, action: Action) -> None:
        """Put an event before and after it into the stream."""
        event: Any = torch.cuda.Event
        start, end = (event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream(self._device)
        if not self._events:
            self._since = time()
        start.record(stream)
        action()
        end.record(stream)
        self._events.append((start, end))

    def samples(self) -> list[Sample]:
        """The times since the last call, after the one synchronize; when each began is counted from the first."""
        torch.cuda.synchronize(self._device)
        taken, self._events = self._events, []
        return [
            Sample(self._since + taken[0][0].elapsed_time(start) / 1e3, start.elapsed_time(end) / 1e3)
            for start, end in taken
        ]

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
