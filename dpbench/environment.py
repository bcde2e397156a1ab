"""Where a figure was taken. Enough to say which figures may be compared, and what else differs between two.

``machine`` is the hardware, hashed into an id: only figures of one id are compared. ``versions`` and ``flags`` are the
software and how it and the system are set: listed and compared, never a reason to refuse
(:mod:`dpbench.comparability`). What the machine was doing meanwhile is the state of each round (:mod:`dpbench.state`).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpbench import nvml, procfs
from dpbench.contain import ALLOCATOR, cores
from dpbench.entrypoints import points
from dpbench.records import digest
from dpbench.worktree import on_its_own

LIBRARIES = ("torch", "numpy", "timm", "torchvision", "transformers", "peft", "opacus", "fastDP")
"""Whose versions are recorded, with those of the distributions that implementations come from."""

_VARIABLES = (
    *("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY"),
    *("KMP_AFFINITY", "KMP_BLOCKTIME", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING"),
    *("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "LD_PRELOAD", "MALLOC_CONF", "GLIBC_TUNABLES"),
)
"""Of the process, that change how fast the same code runs."""


def environment() -> dict[str, Any]:
    """All of it, as plain values for a results file; what is not there is null."""
    hardware = _hardware()
    return {
        "machine": {"id": digest(hardware), **hardware},
        "versions": _versions(),
        "flags": {**_flags(), **_settings(), **{name: os.environ.get(name) for name in _VARIABLES}},
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


def _flags() -> dict[str, Any]:
    """Of torch, as a child finds them; each workload's precision sets TF32 by itself."""
    import torch

    cudnn = torch.backends.cudnn
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "allocator": ALLOCATOR,
        "float32_matmul_precision": _old_flag(torch.get_float32_matmul_precision),
        "tf32": _old_flag(lambda: torch.backends.cuda.matmul.allow_tf32),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn_benchmark": cudnn.benchmark,
        "cudnn_deterministic": cudnn.deterministic,
    }


def _old_flag(read: Callable[[], Any]) -> Any:
    """Null where a script has set what replaced it (``torch.backends.fp32_precision``): torch then refuses to tell."""
    with suppress(RuntimeError):
        return read()
    return None


def _settings() -> dict[str, Any]:
    """Of the system, that are changed without changing the hardware."""
    with nvml.opened() as library:
        cards = [] if library is None else nvml.handles(library)
        limits = [nvml.ask(library, "nvmlDeviceGetPowerManagementLimit", card) for card in cards]
    return {
        "cpus": cores(),
        "governor": procfs.governor(),
        "turbo": procfs.turbo(),
        "transparent_hugepages": procfs.huge_pages(),
        "gpu_power_limit_watts": [None if limit is None else limit / 1e3 for limit in limits] or None,
    }


def _gpus() -> tuple[list[dict[str, Any]], str | None]:
    """NVIDIA's GPUs and their driver, asked without starting CUDA in this process."""
    with nvml.opened() as library:
        if library is None:
            return [], None
        gpus = []
        for handle in nvml.handles(library):
            memory = nvml.ask(library, "nvmlDeviceGetMemoryInfo", handle)
            name = nvml.words(nvml.ask(library, "nvmlDeviceGetName", handle))
            gpus.append({"name": name, "memory_gib": None if memory is None else round(memory.total / 2**30)})
        return gpus, nvml.words(nvml.ask(library, "nvmlSystemGetDriverVersion")) or None


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
        "cublas": _cublas(torch.version.cuda),
        "driver": _gpus()[1],
        "system": platform.platform(),
    }


def _cublas(cuda: str | None) -> str | None:
    """Of the wheel beside torch's; a torch that was built with its own has none."""
    names = ("nvidia-cublas", f"nvidia-cublas-cu{(cuda or '').partition('.')[0]}")
    return next((found for name in names if (found := _version(name)) is not None), None)


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
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10, env=on_its_own(os.environ)
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None
