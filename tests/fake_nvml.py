"""A stand-in for the library pynvml, with cards that tests describe."""

from __future__ import annotations

import sys
from types import SimpleNamespace


class NVMLError(Exception):
    pass


def card(name="NVIDIA L4", uuid="GPU-0000", **said):
    """What NVML's functions say of it, by their names without ``nvmlDeviceGet``; what is missing is not supported."""
    values = {
        "Name": name,
        "UUID": uuid,
        "MigMode": [0, 0],
        "MemoryInfo": SimpleNamespace(total=24 * 2**30),
        "PersistenceMode": 1,
        "ComputeRunningProcesses": [],
        "MaxClockInfo": 2040,
        "ApplicationsClock": 2040,
        "DefaultApplicationsClock": 2040,
        "PowerManagementLimit": 72000,
        "PowerManagementDefaultLimit": 72000,
        "RemappedRows": (0, 0, 0, 0),
        "CurrentClocksEventReasons": 0,
        "PowerUsage": 50500,
        "Temperature": 61,
        "ClockInfo": lambda kind: {1: 1500, 2: 6250}[kind],
    }
    return {**values, **said}


def process(pid):
    return SimpleNamespace(pid=pid)


class FakeNvml:
    """Counts how often it was opened and shut."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *cards, driver="580.10", cuda=13000):
        self.cards, self.driver, self.cuda, self.open = cards, driver, cuda, 0

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlSystemGetDriverVersion(self):
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self):
        return self.cuda

    def nvmlDeviceGetCount(self):
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.cards[index]

    def __getattr__(self, function):
        name = function.removeprefix("nvmlDeviceGet")

        def ask(handle, *arguments):
            value = handle.get(name)
            if value is None:
                raise NVMLError(f"{name}: Not Supported")
            return value(*arguments) if callable(value) else value

        return ask


def install(monkeypatch, *cards, **more):
    """Make it what ``import pynvml`` gives."""
    fake = FakeNvml(*cards, **more)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake
