"""What a worker is confined to, so that whatever it does it takes nothing else with it. No torch here.

A worker has a memory limit, is the first that the kernel kills when memory runs out, dies with its
parent and leads a process group of its own. Outside Linux only the last of these holds.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

RESERVE = 0.05
"""Part of the machine's memory that workers leave free for everything else."""

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def available_memory() -> int:
    """Bytes that a new process can fill: what is free or can be freed, within the control group's limit."""
    import psutil

    memory = psutil.virtual_memory()
    free = min([int(memory.available), *_control_group()])
    return max(free - int(RESERVE * memory.total), 0)


def _control_group(root: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """What is left under the limits of control groups version 2 and 1, where there are limits."""
    left = []
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            left.append(int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):
            continue
    return [value for value in left if value >= 0]


def limit_memory(new_bytes: int) -> None:
    """Let this process allocate ``new_bytes`` more than it has; then its allocations fail.

    The limit is on private writable memory (RLIMIT_DATA): what was mapped before the fork is shared
    with the fork server and costs nothing.
    """
    if sys.platform != "linux":
        return
    limit = _mapped() + new_bytes
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _mapped() -> int:
    """Bytes of private writable memory this process has mapped."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def die_first() -> None:
    """Ask the kernel to kill this process before any other when memory runs out."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the process ``parent``, its parent, is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def keep_freed_memory() -> str:
    """Keep freed memory in this process, as CUDA's caching allocator does; says what was done.

    glibc hands large temporaries back to the system when they are freed, and faulting their pages in
    again costs up to half of a step that makes many of them. That is a property of the allocator and
    not of an algorithm, so timings are taken without it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return "system's own"
    kept = mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    return "glibc, freed memory kept" if kept else "glibc"
