import os

import pytest

from dpbench.procfs import Task, Ticks
from dpbench.system import activity
from tests.fake_root import cpu_time, put, stat

US = os.getpid()
MEMINFO = "MemTotal: 1000 kB\nMemAvailable: {} kB\nSwapTotal: 500 kB\nSwapFree: {} kB"


def test_it_watches_while_it_sleeps_and_finds_all_five(tmp_path):
    put(
        tmp_path,
        {"proc/stat": cpu_time(user=0, idle=0), f"proc/{US}/stat": stat(1), "proc/meminfo": MEMINFO.format(900, 500)},
    )
    put(tmp_path, {"proc/cpuinfo": "flags : fpu"})

    def meanwhile(seconds):
        put(tmp_path, {"proc/stat": cpu_time(user=50, idle=150), "proc/90002/stat": stat(1, own=50, name="make")})

    found = {f.name: f for f in activity.findings(tmp_path, meanwhile)}
    assert {name: f.verdict for name, f in found.items()} == {
        **{"other load": "disturbs", "virtual machine": "ok", "swap": "ok", "memory": "ok", "huge pages": "note"}
    }
    assert found["other load"].text == "other processes take 25 % of all CPUs"
    assert found["other load"].fix == "end or wait for: make (90002)"


def test_the_busiest_of_others_are_named_and_never_ourselves():
    before = {1: Task(0, "init", 0, 0), US: Task(1, "us", 0, 0), 7: Task(1, "old", 500, 500), 9: Task(1, "idle", 9, 9)}
    after = {
        **before,
        **{US: Task(1, "us", 300, 300), 8: Task(US, "ours", 400, 400)},
        **{7: Task(1, "old", 510, 510), 11: Task(1, "new", 90, 90)},
    }
    assert activity.load(0.5, before, after).fix == "end or wait for: new (11), old (7)"
    assert activity.load(0.5, {}, {}).fix == "end or wait for: processes that have ended since"
    assert activity.load(0.01, before, after).verdict == "ok"
    assert activity.load(None, {}, {}).verdict == "note"


@pytest.mark.parametrize(
    ("flags", "stolen", "verdict"), [("fpu", 0, "ok"), ("hypervisor", 0, "note"), ("hypervisor", 5, "disturbs")]
)
def test_what_a_host_takes_disturbs(tmp_path, flags, stolen, verdict):
    put(tmp_path, {"proc/cpuinfo": f"flags : {flags}"})
    found = activity.stolen(Ticks(1000, 500, 0), Ticks(1100, 550, stolen), tmp_path)
    assert found.verdict == verdict
    if stolen:
        assert "0.45 % of the CPU time since it started, 5.0 % just now" in found.text


def test_memory_that_is_short_or_on_the_disk_disturbs(tmp_path):
    put(tmp_path, {"proc/meminfo": MEMINFO.format(99, 400)})
    assert activity.swap(tmp_path).text.startswith("102 kB in use")
    assert activity.memory(tmp_path).verdict == "disturbs"
    put(tmp_path, {"proc/meminfo": MEMINFO.format(101, 500)})
    assert activity.swap(tmp_path).verdict == activity.memory(tmp_path).verdict == "ok"
    assert activity.memory(tmp_path / "nothing").verdict == "note"
