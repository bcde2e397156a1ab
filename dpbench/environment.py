"""Where a figure was taken: hardware, software, flags. Enough to say which figures may be compared."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpbench.contain import ALLOCATOR
from dpbench.entrypoints import points
from dpbench.records import digest

LIBRARIES = ("torch", "numpy", "timm", "torchvision", "transformers", "peft", "opacus", "fastDP")
"""Whose versions are recorded, with those of the distributions that implementations come from."""

_FLAGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "LD_PRELOAD")


def environment() -> dict[str, Any]:
    """All of it, as plain values for a results file; what is not there is null."""
    import torch

    hardware = _hardware()
    return {
        "machine": {"id": digest(hardware), **hardware},
        "versions": _versions(),
        "flags": {
            "threads": torch.get_num_threads(),
            "allocator": ALLOCATOR,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            **{name: os.environ.get(name) for name in _FLAGS},
        },
        "dpbench": {"version": _version("dpsgd-bench"), "revision": revision(Path(__file__).parent.parent)},
    }


def describe(environment: dict[str, Any]) -> str:
    """The machine in one line."""
    machine, versions = environment["machine"], environment["versions"]
    gpus = "".join(f", {gpu['name']}" for gpu in machine["gpus"])
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB{gpus}; "
        f"python {versions['python']}, torch {versions['torch']}"
    )


def _hardware() -> dict[str, Any]:
    import psutil

    return {
        "cpu": _cpu(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": psutil.cpu_count(logical=False) or os.cpu_count(),
        "logical_cores": os.cpu_count(),
        # Rounded, because the total differs by some pages from one start of a machine to the next.
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpus": _gpus()[0],
    }


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        with suppress(OSError, subprocess.SubprocessError):
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return platform.processor() or platform.machine()


def _gpus() -> tuple[list[dict[str, Any]], str | None]:
    """NVIDIA's GPUs and their driver, asked without starting CUDA in this process."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return [], None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        gpus = [
            {
                "name": _text(pynvml.nvmlDeviceGetName(handle)),
                "memory_gib": round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30),
            }
            for handle in handles
        ]
        return gpus, _text(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return [], None
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _versions() -> dict[str, str | None]:
    import torch

    found = {name: _version(name) for name in dict.fromkeys([*LIBRARIES, *_distributions()])}
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return {
        "python": platform.python_version(),
        **found,
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cudnn": None if cudnn is None else str(cudnn),
        "driver": _gpus()[1],
        "system": platform.platform(),
    }


def _distributions() -> Iterable[str]:
    """The distributions that implementations come from."""
    for point in points().values():
        if point.dist is not None and point.dist.name != "dpsgd-bench":
            yield point.dist.name


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def revision(checkout: Path) -> str | None:
    """The commit of a checkout, with ``+changes`` where files differ from it; None outside of one."""
    if not (checkout / ".git").exists():
        return None

    def git(*words: str) -> str:
        command = ["git", "-C", str(checkout), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None
