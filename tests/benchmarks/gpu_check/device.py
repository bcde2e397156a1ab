"""The device itself: what NVIDIA's driver tells of it, what a context takes, and whether flags do what they say."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from dpbench import nvml, precision
from dpbench.cards import CONTEXT
from dpbench.reporting.numbers import size
from tests.benchmarks.gpu_check.check import Answer, Check, Say, answer, could_not
from tests.benchmarks.gpu_check.driver import DEVICE

FIELDS = "NVML: name, memory, clocks, throttle reasons"
SAME = "NVML and torch mean the same card"
TAKEN = "memory that the context and kernels take"
OFF, ON = "products and convolutions in fp32", "products and convolutions in tf32"
EXACT, ROUNDED = 1e-5, 1e-2
"""Relative errors of sums of 1024 products of normal numbers: float32's lie well below the first, TF32's between."""


def device(say: Say) -> None:
    """NVML is asked before CUDA is started, as its memory tells what that takes."""
    with nvml.opened() as library:
        handle = None if library is None else nvml.handle_of(library, DEVICE)
        if library is None or handle is None:
            for part in (FIELDS, SAME, TAKEN):
                say(could_not(part, "an answer", "NVML does not tell which card it is, or is not there"))
        else:
            say(fields(library, handle))
            before = nvml.ask(library, "nvmlDeviceGetMemoryInfo", handle)
            at_work()
            after = nvml.ask(library, "nvmlDeviceGetMemoryInfo", handle)
            say(same(library, handle, after))
            say(taken(before, after))
    say(flags("fp32", OFF))
    say(flags("tf32", ON))


def fields(library: Any, handle: Any) -> Answer:
    """All that a record's state reads."""
    reading = nvml.read(library, handle)
    memory = nvml.ask(library, "nvmlDeviceGetMemoryInfo", handle)
    told = {
        "name": nvml.words(nvml.ask(library, "nvmlDeviceGetName", handle)) or None,
        "memory": None if memory is None else memory.total,
        "driver": nvml.words(nvml.ask(library, "nvmlSystemGetDriverVersion")) or None,
        "mhz": reading.mhz,
        "memory_mhz": reading.memory_mhz,
        "reasons": reading.reasons,
        "watts": reading.watts,
        "celsius": reading.celsius,
    }
    lacking = [name for name, value in told.items() if value is None]
    got = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
    return answer(
        FIELDS, "all of them", got + (f"; lacking {', '.join(lacking)}" if lacking else ""), not lacking, **told
    )


def at_work() -> None:
    """Start CUDA, and load the libraries of products and convolutions."""
    x = torch.randn(64, 64, device=DEVICE, requires_grad=True)
    image = torch.randn(2, 8, 16, 16, device=DEVICE)
    kernel = torch.randn(8, 8, 3, 3, device=DEVICE, requires_grad=True)
    torch.autograd.grad((x @ x).sum() + F.conv2d(image, kernel).sum(), [x, kernel])
    torch.cuda.synchronize(DEVICE)
    del x, image, kernel


def same(library: Any, handle: Any, memory: Any) -> Answer:
    """By name and memory, of which the driver keeps a part for itself."""
    properties = torch.cuda.get_device_properties(DEVICE)
    name = nvml.words(nvml.ask(library, "nvmlDeviceGetName", handle))
    near = memory is not None and abs(properties.total_memory / memory.total - 1) < 0.05
    got = f"torch: {properties.name}, {size(properties.total_memory)}; NVML: {name}"
    got += "" if memory is None else f", {size(memory.total)}"
    return answer(
        SAME, "one name, and memory within 5 %", got, name == properties.name and near, total=properties.total_memory
    )


def taken(before: Any, after: Any) -> Answer:
    """What is used now and was not before, less what torch's allocator holds."""
    expected = f"at most {size(CONTEXT)}, as batches are planned with"
    if before is None or after is None:
        return could_not(TAKEN, expected, "NVML does not tell what is used")
    held = torch.cuda.memory_reserved(DEVICE)
    more = after.used - before.used - held
    return answer(TAKEN, expected, size(more), more <= CONTEXT, used_before=before.used, used=after.used, held=held)


def flags(name: str, part: str) -> Answer:
    """Errors against float64 of a product and of a convolution."""
    low, high = (EXACT, ROUNDED) if name == "tf32" else (0.0, EXACT)
    expected = f"relative errors from {low:g} to {high:g}"
    if name == "tf32" and torch.cuda.get_device_capability(DEVICE)[0] < 8:
        return could_not(part, expected, "the card has no TF32 (compute capability 8.0)")
    precision.allow_tf32(name == "tf32")
    torch.manual_seed(0)
    a, b = torch.randn(2, 1024, 1024, device=DEVICE)
    x, w = torch.randn(8, 128, 32, 32, device=DEVICE), torch.randn(128, 128, 3, 3, device=DEVICE)
    errors = {
        "product": relative(a @ b, a.double() @ b.double()),
        "convolution": relative(F.conv2d(x, w), F.conv2d(x.double(), w.double())),
    }
    got = ", ".join(f"{what} {error:.1e}" for what, error in errors.items())
    return answer(part, expected, got, all(low <= error <= high for error in errors.values()), **errors)


def relative(got: torch.Tensor, true: torch.Tensor) -> float:
    """``||got - true|| / ||true||``."""
    return float((got.double() - true).norm() / true.norm())


CHECKS = (Check("device", (FIELDS, SAME, TAKEN, OFF, ON), 30.0, device),)
