"""What NVIDIA's driver tells of a GPU, through NVML: CUDA is not started, and what it does not tell is None."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

IDLE, POWER_CAP, HARDWARE = 0x1, 0x4, 0x8
THROTTLES: Mapping[int, str] = {
    HARDWARE: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""The reasons for lower clocks that make one round unlike another: heat, the power supply, and other GPUs.

Not those that hold all the time: what a user set (application and display clocks), and the limits that a card at work
meets by itself. Of the software power cap NVML says that clocks "have been optimized to ensure not to exceed currently
set power limits": on many cards every large matrix product does that, and a round repeated would meet it again.

Source: NVML API Reference, NvmlClocksEventReasons.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A GPU at one moment."""

    mhz: float | None
    memory_mhz: float | None
    watts: float | None
    celsius: float | None
    reasons: int | None
    """Why its clocks are not higher, a bit for each reason."""
    pids: tuple[int, ...] | None
    """Processes that compute on it, numbered as the driver does."""


@contextmanager
def opened() -> Iterator[Any | None]:
    """The library, ready to be asked; None without a driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        yield None
        return
    try:
        yield pynvml
    finally:
        ask(pynvml, "nvmlShutdown")


def ask(nvml: Any, name: str, *arguments: Any) -> Any | None:
    """What one of its functions gives; None where the card, the driver or the library has no such thing."""
    try:
        return getattr(nvml, name)(*arguments)
    except Exception:
        return None


def words(value: str | bytes | None) -> str:
    """Text, which older versions give as bytes."""
    return value.decode() if isinstance(value, bytes) else value or ""


def handles(nvml: Any) -> list[Any]:
    """All GPUs of the machine, in the order of NVML, which is that of the bus."""
    found = (ask(nvml, "nvmlDeviceGetHandleByIndex", i) for i in range(ask(nvml, "nvmlDeviceGetCount") or 0))
    return [handle for handle in found if handle is not None]


def handle_of(nvml: Any, device: str, environ: Mapping[str, str] = os.environ) -> Any | None:
    """The GPU that torch calls ``device``; None for a CPU, a part of a card (MIG), and where it is not certain.

    ``CUDA_VISIBLE_DEVICES`` chooses and orders by index or UUID; what follows an entry that is none is not seen.
    CUDA numbers the fastest card first unless ``CUDA_DEVICE_ORDER`` says PCI_BUS_ID, so that among different cards an
    index alone is not certain.

    Source: CUDA Programming Guide, Environment Variables.
    """
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return None
    seen = _visible(nvml, environ)
    place = int(index or 0)
    handle = seen[place] if place < len(seen) else None
    return None if handle is None or in_parts(nvml, handle) else handle


def in_parts(nvml: Any, handle: Any) -> bool:
    """Whether the card is divided (MIG): its clocks and processes are then not those of one part."""
    return bool((ask(nvml, "nvmlDeviceGetMigMode", handle) or [0])[0])


def _visible(nvml: Any, environ: Mapping[str, str]) -> list[Any | None]:
    """By torch's index; None where it is not certain which one it is."""
    cards = handles(nvml)
    alike = len({words(ask(nvml, "nvmlDeviceGetName", h)) for h in cards}) <= 1
    numbered = list(cards) if alike or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" else [None] * len(cards)
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return numbered
    seen: list[Any | None] = []
    for entry in (e.strip() for e in listed.split(",")):
        if entry.isdecimal() and int(entry) < len(numbered):
            seen.append(numbered[int(entry)])
        elif entry.startswith("GPU-"):
            named = [h for h in cards if words(ask(nvml, "nvmlDeviceGetUUID", h)).startswith(entry)]
            if len(named) != 1:
                break
            seen += named
        else:
            break
    return seen


def read(nvml: Any, handle: Any) -> Reading:
    """A GPU as it is now."""
    milliwatts = ask(nvml, "nvmlDeviceGetPowerUsage", handle)
    return Reading(
        mhz=ask(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
        memory_mhz=ask(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
        watts=None if milliwatts is None else milliwatts / 1e3,
        celsius=ask(nvml, "nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
        reasons=reasons(nvml, handle),
        pids=processes(nvml, handle),
    )


def reasons(nvml: Any, handle: Any) -> int | None:
    """Why its clocks are not higher; drivers before 535 know the question by an older name."""
    found = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    return ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle) if found is None else found


def processes(nvml: Any, handle: Any) -> tuple[int, ...] | None:
    """Ids of the processes that compute on it."""
    found = ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    return None if found is None else tuple(process.pid for process in found)
