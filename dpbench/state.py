"""What the machine was doing while a round was measured: other work, clocks, power, heat. No torch here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low
from typing import Any

from dpbench import nvml, procfs

PERIOD = 0.25
"""Seconds between two readings of a GPU."""
CLOCK_EVERY = 4
"""Readings between two of the CPU's clock: some kernels ask every core for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The machine during one round; None is what it does not tell."""

    others: float | None = None
    """Share of the CPU time of all cores that went to other processes than ours, 0 to 1; that which the host of a
    virtual machine took is theirs, too."""
    load: float | None = None
    """Processes that ran or wanted to, the mean over the minute before; ours of earlier rounds count."""
    mhz: float | None = None
    """Clock of the fastest CPU, median over the round."""
    gpu_mhz: float | None = None
    """Clock of the multiprocessors; this and what follows while the GPU was at work, medians."""
    gpu_memory_mhz: float | None = None
    gpu_watts: float | None = None
    gpu_celsius: float | None = None
    gpu_others: int | None = None
    """Other processes that computed on it; None in a container, whose process ids are not the driver's."""
    gpu_power_capped: bool | None = None
    """Whether its clocks met the power limit, as those of many cards at work do; see ``nvml.THROTTLES``."""
    throttled: tuple[str, ...] | None = None
    """What else held its clocks down."""


class Watched:
    """The round that is going on; its :attr:`state` is there when it is over."""

    def __init__(self) -> None:
        self.state = State()


@contextmanager
def watched(device: str = "cpu", root: Path = procfs.ROOT) -> Iterator[Watched]:
    """Watch the machine while a round runs in children of this process; ``device`` is torch's name.

    A thread reads clocks and the GPU meanwhile, through NVML alone: CUDA is not started in this process.
    """
    seen = Watched()
    load = os.getloadavg()[0]
    with nvml.opened() if device.startswith("cuda") else _nothing() as library:
        sampler = _Sampler(library, device, root)
        before = _cpu_time(root)
        sampler.start()
        try:
            yield seen
        finally:
            sampler.stop()
            seen.state = State(others=_others(before, _cpu_time(root)), load=load, **sampler.summary())


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


def _cpu_time(root: Path) -> tuple[procfs.Ticks, int] | None:
    """Of all cores, and of us with all our children."""
    everything, found, ours = procfs.ticks(root), procfs.tasks(root), os.getpid()
    if everything is None or ours not in found:
        return None
    return everything, sum(t.total for pid, t in found.items() if procfs.is_ours(pid, found, ours))


def _others(before: tuple[procfs.Ticks, int] | None, after: tuple[procfs.Ticks, int] | None) -> float | None:
    if before is None or after is None or after[0].total <= before[0].total:
        return None
    passed = after[0].total - before[0].total
    theirs = after[0].busy - before[0].busy - (after[1] - before[1])
    return min(1.0, max(0.0, theirs / passed))


class _Sampler:
    """Takes readings in a thread of its own; without anything to read there is no thread."""

    def __init__(self, library: Any | None, device: str, root: Path) -> None:
        self._library, self._root = library, root
        self._handle = None if library is None else nvml.handle_of(library, device)
        self._cpus = procfs.allowed()
        self._has_clock = procfs.mhz(self._cpus, root) is not None
        self._counts = procfs.knows_all_processes(root)
        self._clocks: list[float] = []
        self._readings: list[nvml.Reading] = []
        self._others: list[int] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._has_clock or self._handle is not None:
            self._thread = threading.Thread(target=self._run, name="state", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        """The first reading comes after a period: what is read at once is the time before the round."""
        taken = 0
        while not self._over.wait(PERIOD):
            self._read(clock=taken % CLOCK_EVERY == 0)
            taken += 1
        if taken == 0:
            self._read(clock=True)

    def _read(self, clock: bool) -> None:
        if clock and (mhz := procfs.mhz(self._cpus, self._root)) is not None:
            self._clocks.append(mhz)
        if self._handle is not None:
            reading = nvml.read(self._library, self._handle)
            self._readings.append(reading)
            if self._counts and reading.pids is not None:
                self._others.append(sum(not self._is_ours(pid) for pid in reading.pids))

    def _is_ours(self, pid: int) -> bool:
        ours = os.getpid()
        while pid > 1 and pid != ours:
            found = procfs.task(pid, self._root)
            pid = 0 if found is None else found.parent
        return pid == ours

    def summary(self) -> dict[str, Any]:
        at_work = [r for r in self._readings if not (r.reasons or 0) & nvml.IDLE] or self._readings
        reasons = [r.reasons for r in at_work if r.reasons is not None]
        return {
            "mhz": _median(self._clocks),
            "gpu_mhz": _median(r.mhz for r in at_work),
            "gpu_memory_mhz": _median(r.memory_mhz for r in at_work),
            "gpu_watts": _median(r.watts for r in at_work),
            "gpu_celsius": _median(r.celsius for r in at_work),
            "gpu_others": median_low(self._others) if self._others else None,
            "gpu_power_capped": any(r & nvml.POWER_CAP for r in reasons) if reasons else None,
            "throttled": throttles(reasons) if reasons else None,
        }


def throttles(reasons: list[int]) -> tuple[str, ...]:
    """What held the clocks down in any of some readings.

    A hardware slowdown has to be in two: NVML says that it may also be reported while clocks change.
    """
    times = {bit: sum(bool(r & bit) for r in reasons) for bit in nvml.THROTTLES}
    return tuple(name for bit, name in nvml.THROTTLES.items() if times[bit] > (bit == nvml.HARDWARE))


def _median(values: Iterable[float | None]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return median(known) if known else None
