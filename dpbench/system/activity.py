"""What else the machine is doing: other processes, the host of a virtual machine, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dpbench import procfs
from dpbench.contain import free_memory
from dpbench.reporting.numbers import percent, size
from dpbench.state import watched
from dpbench.system.finding import Finding, disturbs, note, ok

SECONDS = 1.0
"""For which the machine is watched."""
LOUD = 0.02
"""Share of all CPUs' time that may go to others before it is called a disturbance."""
STOLEN = 0.001
LITTLE = 0.1
"""Share of the memory below which what is free is called little."""
_BUSIEST = 3


def findings(root: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[Finding]:
    """Watch for :data:`SECONDS`, doing nothing."""
    before, tasks = procfs.ticks(root), procfs.tasks(root)
    with watched(root=root) as seen:
        sleep(SECONDS)
    after, now = procfs.ticks(root), procfs.tasks(root)
    yield load(seen.state.others, tasks, now)
    yield stolen(before, after, root)
    yield swap(root)
    yield memory(root)
    found = procfs.huge_pages(root)
    yield note("huge pages", f"transparent ones: {found or 'not told'}; compare only runs with the same setting")


def load(others: float | None, before: dict[int, procfs.Task], after: dict[int, procfs.Task]) -> Finding:
    """Other processes."""
    if others is None:
        return note("other load", "not told")
    text = f"other processes take {percent(others)} of all CPUs"
    if others <= LOUD:
        return ok("other load", text)
    ours = os.getpid()
    spent = {
        pid: task.own - (before[pid].own if pid in before else 0)
        for pid, task in after.items()
        if not procfs.is_ours(pid, after, ours)
    }
    busiest = sorted((pid for pid in spent if spent[pid] > 0), key=lambda pid: -spent[pid])[:_BUSIEST]
    who = ", ".join(f"{after[pid].name} ({pid})" for pid in busiest) or "processes that have ended since"
    return disturbs("other load", text, f"end or wait for: {who}")


def stolen(before: procfs.Ticks | None, after: procfs.Ticks | None, root: Path) -> Finding:
    """What the host of a virtual machine takes."""
    if "hypervisor" not in procfs.cpu_flags(root):
        return ok("virtual machine", "none is told of")
    if before is None or after is None:
        return note("virtual machine", "yes; what its host takes is not told")
    passed = max(1, after.total - before.total)
    now, ever = (after.stolen - before.stolen) / passed, after.stolen / max(1, after.total)
    text = f"yes; its host took {percent(ever)} of the CPU time since it started, {percent(now)} just now"
    if max(now, ever) <= STOLEN:
        return note("virtual machine", f"{text}; what neighbours do to caches and clocks is not seen")
    return disturbs("virtual machine", text, "CPUs of its own (dedicated or metal), or more rounds")


def swap(root: Path) -> Finding:
    """Memory that lies on a disk."""
    found = procfs.table(root, "proc/meminfo")
    used = 1024 * (found.get("SwapTotal", 0) - found.get("SwapFree", 0))
    if used <= 0:
        return ok("swap", "none in use")
    return disturbs("swap", f"{size(used)} in use: pages may have to come from the disk", "sudo swapoff --all")


def memory(root: Path) -> Finding:
    """What is free; of a container, what it has left."""
    found = procfs.table(root, "proc/meminfo")
    total, free = 1024 * found.get("MemTotal", 0), 1024 * found.get("MemAvailable", 0)
    if not total:
        return note("memory", "not told")
    if root == procfs.ROOT:
        free = min(free, free_memory())
    text = f"{size(free)} of {size(total)} are free"
    if free >= LITTLE * total:
        return ok("memory", text)
    return disturbs("memory", f"{text}: files are read again, and steps may fail", "end what holds it")
