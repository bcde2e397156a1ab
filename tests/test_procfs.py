import os
import subprocess
import sys

import pytest

from dpbench import procfs
from tests.fake_root import cpu_time, put, stat

CPU = "sys/devices/system/cpu"


def test_where_nothing_is_told_everything_is_none(tmp_path):
    assert procfs.ticks(tmp_path) is None
    assert procfs.tasks(tmp_path) == {}
    assert procfs.mhz({0}, tmp_path) is None
    assert procfs.governor(tmp_path) is None
    assert procfs.turbo(tmp_path) is None
    assert procfs.huge_pages(tmp_path) is None
    assert procfs.nodes(tmp_path) == []
    assert procfs.siblings(3, tmp_path) == {3}
    assert procfs.cpu_flags(tmp_path) == set()
    assert not procfs.knows_all_processes(tmp_path)
    assert procfs.number(tmp_path, "nothing") is None
    assert procfs.table(tmp_path, "nothing") == {}


def test_busy_is_what_is_neither_idle_nor_waiting_and_guests_do_not_count_twice(tmp_path):
    put(tmp_path, {"proc/stat": cpu_time(user=50, idle=30, waiting=10, steal=5, guest=40)})
    assert procfs.ticks(tmp_path) == procfs.Ticks(total=95, busy=55, stolen=5)


def test_a_name_may_hold_anything(tmp_path):
    put(tmp_path, {"proc/7/stat": stat(3, own=4, children=6, name="x) R 1 (y")})
    assert procfs.task(7, tmp_path) == procfs.Task(parent=3, name="x) R 1 (y", own=4, total=10)


def test_who_descends_from_us_is_ours():
    found = {pid: procfs.Task(parent, "", 0, 0) for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1))}
    assert [pid for pid in found if procfs.is_ours(pid, found, 10)] == [10, 11, 12]
    assert not procfs.is_ours(99, found, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_this_machine_agrees_with_psutil_and_with_our_own_process():
    psutil = pytest.importorskip("psutil")
    found = procfs.tasks()
    assert found[os.getpid()].parent == os.getppid()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert procfs.is_ours(child.pid, procfs.tasks(), os.getpid())
        assert procfs.task(child.pid).name == psutil.Process(child.pid).name()
    finally:
        child.communicate(b"\n")
    assert procfs.task(child.pid) is None
    assert procfs.table(procfs.ROOT, "proc/meminfo")["MemTotal"] * 1024 == psutil.virtual_memory().total
    assert procfs.allowed() == os.sched_getaffinity(0)


def test_the_clock_is_the_fastest_of_the_cpus_asked_for(tmp_path):
    put(tmp_path, {f"{CPU}/cpu{i}/cpufreq/scaling_cur_freq": str(khz) for i, khz in enumerate((800000, 3200000, 9))})
    assert procfs.mhz({0, 1}, tmp_path) == 3200
    assert procfs.mhz({0}, tmp_path) == 800


@pytest.mark.parametrize(("flags", "expected"), [("fpu aperfmperf", 2700.5), ("fpu hypervisor", None)])
def test_a_constant_number_of_a_virtual_machine_is_no_clock(tmp_path, flags, expected):
    put(tmp_path, {"proc/cpuinfo": f"flags\t\t: {flags}\ncpu MHz\t\t: 2000.0\ncpu MHz\t\t: 2700.5"})
    assert procfs.mhz({0}, tmp_path) == expected


def test_settings_are_read_where_the_kernel_has_them(tmp_path):
    put(
        tmp_path,
        {
            f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
            f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
            f"{CPU}/cpufreq/boost": "1",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "sys/devices/system/node/node0/cpulist": "0-1",
            "sys/devices/system/node/node1/cpulist": "2,3",
            f"{CPU}/cpu1/topology/thread_siblings_list": "1,5",
        },
    )
    assert procfs.governor(tmp_path) == "performance, powersave"
    assert procfs.turbo(tmp_path) is True
    assert procfs.huge_pages(tmp_path) == "madvise"
    assert procfs.nodes(tmp_path) == [{0, 1}, {2, 3}]
    assert procfs.siblings(1, tmp_path) == {1, 5}
    put(tmp_path, {f"{CPU}/intel_pstate/no_turbo": "1"})
    assert procfs.turbo(tmp_path) is False


@pytest.mark.parametrize(
    ("listed", "cpus"), [("", set()), ("0", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("1,3,5-6", {1, 3, 5, 6})]
)
def test_sets_are_read_and_written_as_the_kernel_does(listed, cpus):
    assert procfs.members(listed) == cpus
    assert procfs.written(cpus) == listed
