"""What Linux tells in /proc and /sys, a small function for each; None where it does not tell.

``root`` is the folder that they lie in, which tests put another in place of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
_CPU = "sys/devices/system/cpu"
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The namespace of process ids that a machine starts with; the number is fixed in the kernel (proc_ns.h)."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """CPU time of all cores since the machine started, in ticks."""

    total: int
    busy: int
    """Neither idle nor waiting for a disk; stolen time is busy, somewhere else."""
    stolen: int
    """Taken by the host of a virtual machine for others."""


@dataclass(frozen=True, slots=True)
class Task:
    """One process."""

    parent: int
    name: str
    own: int
    """CPU time in ticks."""
    total: int
    """The same with that of its children that have ended."""


def allowed() -> set[int]:
    """The CPUs that this process may use, where the system says so; else all."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def text(root: Path, path: str) -> str | None:
    """The contents of a file, stripped."""
    try:
        return (root / path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def number(root: Path, path: str) -> int | None:
    """The contents of a file that holds one integer."""
    try:
        return int(text(root, path) or "")
    except ValueError:
        return None


def table(root: Path, path: str) -> dict[str, int]:
    """A file whose lines are a name and a number: /proc/meminfo (in kB), cpu.stat, /proc/vmstat."""
    words = [line.replace(":", " ").split() for line in (text(root, path) or "").splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdecimal()}


def ticks(root: Path = ROOT) -> Ticks | None:
    """What all cores did so far."""
    first = (text(root, "proc/stat") or "").partition("\n")[0].split()
    if len(first) < 9 or first[0] != "cpu":
        return None
    # Beyond these eight stands the time of guests, which user time holds already.
    _, _, _, idle, waiting, _, _, stolen = values = [int(v) for v in first[1:9]]
    return Ticks(sum(values), sum(values) - idle - waiting, stolen)


def task(pid: int | str, root: Path = ROOT) -> Task | None:
    """A process, as long as there is one."""
    before, _, after = (text(root, f"proc/{pid}/stat") or "").rpartition(")")
    values = after.split()
    if len(values) < 15:
        return None
    user, system, children_user, children_system = (int(v) for v in values[11:15])
    own = user + system
    return Task(int(values[1]), before.partition("(")[2], own, own + children_user + children_system)


def tasks(root: Path = ROOT) -> dict[int, Task]:
    """All processes, by their ids."""
    try:
        pids = [name for name in os.listdir(root / "proc") if name.isdecimal()]
    except OSError:
        return {}
    return {int(pid): found for pid in pids if (found := task(pid, root)) is not None}


def is_ours(pid: int, found: Mapping[int, Task], ours: int) -> bool:
    """Whether a process is ``ours``, or a child of its, or a child's child."""
    while pid != ours:
        if pid not in found:
            return False
        pid = found[pid].parent
    return True


def knows_all_processes(root: Path = ROOT) -> bool:
    """Whether process ids mean here what they mean to drivers; in a container they do not."""
    try:
        return os.readlink(root / "proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def mhz(cpus: set[int], root: Path = ROOT) -> float | None:
    """The clock of the fastest of some CPUs: of those at work, as long as one of them is.

    In a virtual machine /proc/cpuinfo has a number that never changes, which is no clock.
    """
    found = [number(root, f"{_CPU}/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus]
    if known := [khz for khz in found if khz]:
        return max(known) / 1e3
    if "aperfmperf" in cpu_flags(root):
        lines = (text(root, "proc/cpuinfo") or "").splitlines()
        return max((float(x.partition(":")[2]) for x in lines if x.startswith("cpu MHz")), default=None)
    return None


def cpu_flags(root: Path = ROOT) -> set[str]:
    """What the CPU has, in the kernel's words."""
    for line in (text(root, "proc/cpuinfo") or "").splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def governor(root: Path = ROOT) -> str | None:
    """Who chooses the clocks; several names if CPUs differ."""
    names = {text(root, str(p.relative_to(root))) for p in root.glob(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(n for n in names if n)) or None


def turbo(root: Path = ROOT) -> bool | None:
    """Whether clocks above the nominal one are allowed, for as long as heat and power permit."""
    if (off := number(root, f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return off == 0
    boost = number(root, f"{_CPU}/cpufreq/boost")
    return None if boost is None else boost == 1


def siblings(cpu: int, root: Path = ROOT) -> set[int]:
    """The CPUs that are one core with this one, itself included."""
    return members(text(root, f"{_CPU}/cpu{cpu}/topology/thread_siblings_list") or "") or {cpu}


def nodes(root: Path = ROOT) -> list[set[int]]:
    """The CPUs of each NUMA node."""
    lists = sorted(root.glob("sys/devices/system/node/node[0-9]*/cpulist"))
    return [cpus for p in lists if (cpus := members(text(root, str(p.relative_to(root))) or ""))]


def huge_pages(root: Path = ROOT) -> str | None:
    """The setting of transparent huge pages: always, madvise or never."""
    found = text(root, "sys/kernel/mm/transparent_hugepage/enabled") or ""
    return found.partition("[")[2].partition("]")[0] or None


def members(listed: str) -> set[int]:
    """The kernel's way of writing a set: ``0-3,8``."""
    made: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal():
            made |= set(range(int(first), int(last or first) + 1))
    return made


def written(cpus: set[int]) -> str:
    """A set as the kernel, and ``taskset -c``, write it: the inverse of :func:`members`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
