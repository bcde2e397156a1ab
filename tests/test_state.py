import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest

from dpbench import nvml, procfs, state
from dpbench.decoding import decode
from dpbench.state import State, throttles, watched
from tests.fake_nvml import FakeNvml, card, install, process
from tests.fake_root import cpu_time, initial_namespace, put, stat

US = os.getpid()


def test_what_is_not_told_is_null(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with watched("cuda", tmp_path) as seen:
        assert seen.state == State()
    assert seen.state == State(load=seen.state.load)


@pytest.mark.parametrize(
    ("user", "steal", "ours", "others"),
    [(100, 0, 100, 0.0), (100, 0, 40, 0.3), (60, 40, 60, 0.2), (0, 0, 0, 0.0), (90, 0, 95, 0.0)],
)
def test_others_took_what_neither_we_nor_our_children_did(tmp_path, user, steal, ours, others):
    """Of 200 ticks of all cores. A child at work and one that has ended and was waited for are ours."""
    put(tmp_path, {"proc/stat": cpu_time(user=1000, idle=1000), "proc/1/stat": stat(0)})
    put(tmp_path, {f"proc/{US}/stat": stat(1, own=7, children=5), "proc/90001/stat": stat(US, own=10)})
    with watched(root=tmp_path) as seen:
        mine = ours // 4
        put(tmp_path, {"proc/stat": cpu_time(user=1000 + user, idle=1200 - user - steal, steal=steal)})
        put(tmp_path, {f"proc/{US}/stat": stat(1, own=7 + mine, children=5 + mine)})
        put(tmp_path, {"proc/90001/stat": stat(US, own=10 + ours - 2 * mine)})
        put(tmp_path, {"proc/90002/stat": stat(1, own=user - ours)})
    assert seen.state.others == pytest.approx(others)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_on_this_machine_grandchildren_are_ours():
    """As workers are, which are forked from a server: what times(2) says they took cannot be others'."""
    burn = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    through = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    before, ticks = os.times(), procfs.ticks()
    with watched() as seen:
        subprocess.run([sys.executable, "-c", through], check=True)
    after, now = os.times(), procfs.ticks()
    took = sum(after[i] - before[i] for i in range(4)) * os.sysconf("SC_CLK_TCK")
    assert took >= 0.4 * os.sysconf("SC_CLK_TCK") - 1
    assert 0 <= seen.state.others <= (now.busy - ticks.busy - took + 10) / (now.total - ticks.total)


def sampled(root, readings):
    cards = iter(readings)
    sampler = state._Sampler(FakeNvml(card()), "cuda", root)
    for reading in cards:
        sampler._handle = reading
        sampler._read(clock=False)
    return sampler.summary()


def test_figures_are_medians_of_the_time_at_work(tmp_path):
    busy = [
        card(ClockInfo=lambda kind, mhz=mhz: mhz * kind, Temperature=t) for mhz, t in ((900, 50), (990, 60), (980, 70))
    ]
    idle = [card(ClockInfo=lambda kind: 210, CurrentClocksEventReasons=nvml.IDLE | 0x40)] * 5
    found = sampled(tmp_path, [*idle, *busy])
    assert (found["gpu_mhz"], found["gpu_memory_mhz"], found["gpu_celsius"]) == (980, 1960, 60)
    assert found["gpu_watts"] == 50.5
    assert found["throttled"] == ()
    assert found["gpu_power_capped"] is False


def test_where_it_never_worked_the_idle_card_is_told(tmp_path):
    assert sampled(tmp_path, [card(CurrentClocksEventReasons=nvml.IDLE)])["gpu_mhz"] == 1500


def test_reasons_are_of_any_reading_and_the_power_limit_stands_apart(tmp_path):
    found = sampled(tmp_path, [card(CurrentClocksEventReasons=r) for r in (0x4, 0x20, 0x2, 0x100 | 0x80)])
    assert found["throttled"] == ("software thermal slowdown", "hardware power brake")
    assert found["gpu_power_capped"] is True
    assert sampled(tmp_path, [card(CurrentClocksEventReasons=None)])["throttled"] is None


def test_a_hardware_slowdown_seen_once_may_be_a_change_of_clocks():
    assert throttles([0, 0x8, 0]) == ()
    assert throttles([0x8, 0x8, 0]) == ("hardware slowdown",)
    assert throttles([0x8 | 0x40]) == ("hardware thermal slowdown",)


def test_processes_of_others_are_counted_where_ids_mean_the_same(tmp_path):
    put(tmp_path, {f"proc/{US}/stat": stat(1), "proc/90001/stat": stat(US), "proc/90002/stat": stat(1)})
    busy = [card(ComputeRunningProcesses=[process(90001), process(90002), process(90003)])]
    assert sampled(tmp_path, busy)["gpu_others"] is None
    initial_namespace(tmp_path)
    assert sampled(tmp_path, busy)["gpu_others"] == 2
    assert sampled(tmp_path, [card()])["gpu_others"] == 0


def test_the_round_is_watched_by_a_thread_that_ends_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "PERIOD", 0.001)
    fake = install(monkeypatch, card())
    put(tmp_path, {"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2500000"})
    monkeypatch.setattr(procfs, "allowed", lambda: {0})
    with pytest.raises(ValueError, match="round"), watched("cuda:0", tmp_path) as seen:
        raise ValueError("a round that fails")
    assert seen.state == State(
        load=seen.state.load,
        mhz=2500,
        gpu_mhz=1500,
        gpu_memory_mhz=6250,
        gpu_watts=50.5,
        gpu_celsius=61,
        gpu_power_capped=False,
        throttled=(),
    )
    assert fake.open == 0
    assert "state" not in {thread.name for thread in threading.enumerate()}


def test_it_survives_json():
    whole = State(others=0.5, gpu_others=2, gpu_power_capped=True, throttled=("sync boost",))
    for one in (State(), whole):
        assert decode(State, json.loads(json.dumps(asdict(one))), "state") == one


def test_importing_it_loads_neither_torch_nor_what_it_asks():
    code = "import sys, dpbench.state; print([m for m in ('torch', 'psutil', 'pynvml', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
