"""The CPU: clocks, and which CPUs the threads of a run may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dpbench import procfs
from dpbench.system.finding import Finding, disturbs, note, ok

_CPU = "sys/devices/system/cpu"


def findings(threads: int, root: Path, cpus: set[int] | None = None) -> Iterator[Finding]:
    """Of a run with so many threads that may use ``cpus``; None: those that this process may."""
    cpus = procfs.allowed() if cpus is None else cpus
    yield governor(root)
    yield turbo(root)
    yield siblings(threads, cpus, root)
    yield affinity(threads, cpus, root)
    yield quota(threads, root)
    yield battery(root)


def governor(root: Path) -> Finding:
    """Who chooses the clocks."""
    found = procfs.governor(root)
    if found is None:
        return note("governor", "not told: a virtual machine, or clocks that the firmware chooses")
    if found == "performance":
        return ok("governor", found)
    return disturbs(
        "governor",
        f"{found}: clocks follow the load of the moment before",
        "sudo cpupower frequency-set --governor performance",
    )


def turbo(root: Path) -> Finding:
    """Clocks above the nominal one."""
    found = procfs.turbo(root)
    if found is None:
        return note("turbo", "not told")
    if not found:
        return ok("turbo", "off")
    intel = (root / _CPU / "intel_pstate/no_turbo").exists()
    switch = f"/{_CPU}/intel_pstate/no_turbo" if intel else f"/{_CPU}/cpufreq/boost"
    return disturbs(
        "turbo",
        "on: clocks depend on heat and on how many cores are at work",
        f"echo {int(intel)} | sudo tee {switch}",
    )


def siblings(threads: int, cpus: set[int], root: Path) -> Finding:
    """Two CPUs that are one core."""
    cores = {frozenset(procfs.siblings(cpu, root)) for cpu in cpus}
    shared = [core for core in cores if len(core & cpus) > 1]
    if not shared:
        return ok("SMT", "no two CPUs of this process are one core")
    first = procfs.written({min(core & cpus) for core in cores})
    if threads > len(cores):
        return disturbs(
            "SMT",
            f"{threads} threads on {len(cores)} cores: two of them share one",
            f"taskset -c {first} dpbench run ... --threads {len(cores)}",
        )
    return disturbs(
        "SMT",
        f"{len(cpus)} CPUs are {len(cores)} cores: two threads, or another process, may share one",
        f"taskset -c {first} dpbench run ...",
    )


def affinity(threads: int, cpus: set[int], root: Path) -> Finding:
    """Whether threads can stay where their data are."""
    nodes = [node & cpus for node in procfs.nodes(root) if node & cpus]
    if threads > len(cpus):
        return disturbs(
            "affinity",
            f"{threads} threads on {len(cpus)} CPUs: they wait for each other",
            f"--threads {len(cpus)}, or OMP_NUM_THREADS={len(cpus)}",
        )
    if len(nodes) > 1:
        return disturbs(
            "affinity",
            f"the CPUs {procfs.written(cpus)} are of {len(nodes)} memory nodes: data may lie near or far",
            "numactl --cpunodebind=0 --membind=0 dpbench run ...",
        )
    if threads < len(cpus):
        some = procfs.written(set(sorted(cpus)[:threads]))
        return disturbs(
            "affinity",
            f"{threads} of {len(cpus)} CPUs are used, and threads move among them",
            f"taskset -c {some} dpbench run ...",
        )
    return ok("affinity", f"{threads} threads on the CPUs {procfs.written(cpus)}")


def quota(threads: int, root: Path) -> Finding:
    """What a container may use of the CPUs, and whether it was stopped for it."""
    folder, limit = _quota(root)
    if limit is None:
        return ok("CPU quota", "none")
    stopped = procfs.table(root, f"{folder}/cpu.stat").get("nr_throttled", 0)
    text = f"{limit:g} CPUs; this container was stopped for it {stopped} times"
    if threads <= limit and not stopped:
        return ok("CPU quota", text)
    return disturbs(
        "CPU quota",
        text,
        f"whole CPUs in place of a share (docker run --cpuset-cpus 0-3), and at most {max(1, int(limit))} threads",
    )


def _quota(root: Path) -> tuple[str, float | None]:
    """The tightest of the control groups that this process is in, of version 2 or 1, and its CPUs."""
    found: list[tuple[float, str]] = []
    for line in (procfs.text(root, "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounts = ["sys/fs/cgroup"] if not controllers else ["sys/fs/cgroup/cpu", f"sys/fs/cgroup/{controllers}"]
        parts = [p for p in path.split("/") if p]
        for mount in mounts:
            for depth in range(len(parts) + 1):
                folder = "/".join([mount, *parts[:depth]])
                if (limit := _limit(root, folder)) is not None:
                    found.append((limit, folder))
    limit, folder = min(found, default=(None, ""))
    return folder, limit


def _limit(root: Path, folder: str) -> float | None:
    words = (procfs.text(root, f"{folder}/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdecimal():
        return int(words[0]) / int(words[1])
    share, period = (procfs.number(root, f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return share / period if share and period and share > 0 else None


def battery(root: Path) -> Finding:
    """Where the power comes from."""
    supplies = sorted(root.glob("sys/class/power_supply/*/online"))
    states = [procfs.number(root, str(p.relative_to(root))) for p in supplies]
    if states and not any(states):
        return disturbs("power", "from a battery: clocks are kept low", "plug it in")
    return ok("power", "from the mains" if states else "no battery is told of")
