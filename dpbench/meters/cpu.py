"""Wall clock and memory on a CPU."""

from __future__ import annotations

import gc
import re
import resource
import sys
from pathlib import Path
from time import perf_counter, time
from typing import Any

import torch

from dpbench.meters.meter import Action, Sample

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class CpuMeter:
    """``peak_live`` and ``peak_process``: the tensors, and the process with all that it holds besides."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []

    def time(self, action: Action) -> None:
        """By the wall clock."""
        at, start = time(), perf_counter()
        action()
        self._samples.append(Sample(at, perf_counter() - start))

    def samples(self) -> list[Sample]:
        """The times since the last call."""
        taken, self._samples = self._samples, []
        return taken

    def memory(self, action: Action) -> dict[str, float]:
        """Runs ``action`` twice: following the allocator makes a step larger for the process."""
        gc.collect()
        reset_peak_process()
        action()
        process = peak_process()
        gc.collect()
        return {"peak_live": peak_live(action), "peak_process": process}


def peak_live(action: Action) -> float:
    """Most bytes of tensors alive at once, above what was alive before, while ``action`` runs.

    It follows torch's allocator, so that buffers inside an operation count as well, such as the
    unfolded input of a convolution.
    """
    # torch.profiler gives the same through Kineto, which takes a second to start in every process.
    profiler: Any = torch.autograd
    quiet = torch._C._profiler._ExperimentalConfig()
    follow_memory = (False, True, False, False, False)
    config = profiler.ProfilerConfig(profiler.ProfilerState.CPU, *follow_memory, quiet)
    profiler._enable_profiler_legacy(config)
    try:
        action()
    finally:
        threads = profiler._disable_profiler_legacy()
    live = peak = 0
    for events in threads:
        for event in events:
            if event.kind() == "memory_alloc":
                live += event.cpu_memory_usage()
                peak = max(peak, live)
    return float(peak)


def peak_process() -> float:
    """Peak resident memory of this process in bytes, since the last reset where the system has one."""
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return float(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) * (1 if sys.platform == "darwin" else 1024)


def reset_peak_process() -> None:
    """Forget the peak so far, where the system can (Linux)."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return
