"""What keeps a child from outliving its parent or taking the machine's memory with it. Linux has all of it."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from dpbench import procfs

SHARE = 0.9
"""Of the memory that is available: what one child may take."""

_SMALL = 1 << 26
"""Bytes of a file that a child may write in any case: other disks may have room."""

_IS_GLIBC = platform.libc_ver()[0] == "glibc"
ALLOCATOR = "glibc, freed memory kept" if _IS_GLIBC else "the system's own"
"""How the CPU's memory is managed while a round is timed; see :func:`keep_freed_memory`."""

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CGROUP = Path("/sys/fs/cgroup")


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Get the signal ``number`` when ``parent``, our parent, dies; if it is dead already, end at once."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of whatever our children leave behind, even where it has gone into a session of its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_children() -> None:
    """Kill all our children and theirs, and wait for them."""
    while True:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Have the signals that end a run wait: an exception in the middle of an import of C++ code ends it in a crash."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def be_first_to_be_killed() -> None:
    """When memory runs out, the kernel is to take this process and no other."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it has; beyond, allocations fail.

    RLIMIT_DATA counts private writable memory alone. RLIMIT_AS would count what is only mapped, too,
    and a torch with CUDA maps many gigabytes that it never touches.
    """
    if sys.platform == "linux":
        allowed = psutil.Process().memory_info().data + more
        _lower(resource.RLIMIT_DATA, allowed)


def limit_files() -> None:
    """Let this process write no file larger than a share of the room on the disk that its stdout goes to.

    Else one that prints without end would fill it, and no results could be written there.
    """
    disk = os.fstatvfs(sys.stdout.fileno())
    _lower(resource.RLIMIT_FSIZE, max(_SMALL, int(SHARE * disk.f_bavail * disk.f_frsize)))


def _lower(limit: int, to: int) -> None:
    """A lower one that the user has set (``ulimit``) stays."""
    lowest = min([to, *(r for r in resource.getrlimit(limit) if r != resource.RLIM_INFINITY)])
    resource.setrlimit(limit, (lowest, lowest))


def keep_freed_memory() -> None:
    """Have malloc keep what is freed, as a training loop of some hours and every CUDA allocator does.

    By default glibc gives large blocks back to the kernel at once, and each step pays for the same
    pages again: more for an implementation with large temporaries than for one without.
    """
    if _IS_GLIBC:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def available_memory() -> int:
    """Bytes that a child may take: a share of what is left."""
    return int(SHARE * free_memory())


def free_memory() -> int:
    """Bytes that this machine, or this container, has left."""
    free: int = psutil.virtual_memory().available
    with suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())
        free = min(free, limit - int((_CGROUP / "memory.current").read_text()) + _file_cache())
    return max(free, 0)


def _file_cache() -> int:
    """Bytes of this container that hold files and are given up when asked for."""
    lines = (_CGROUP / "memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))


def out_of_memory_kills() -> int | None:
    """Processes that the kernel has killed for want of memory since it started; None if it does not tell."""
    for path in (_CGROUP / "memory.events", Path("/proc/vmstat")):
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return None


def cores() -> int:
    """How many CPUs this process may use."""
    return len(procfs.allowed())
