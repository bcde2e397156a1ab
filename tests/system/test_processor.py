import pytest

from dpbench.system import processor
from tests.fake_root import put

CPU = "sys/devices/system/cpu"
PSTATE, BOOST = f"{CPU}/intel_pstate/no_turbo", f"{CPU}/cpufreq/boost"


def topology(root, cores, per_core=2):
    """CPU i and i + cores are one core, as Linux numbers them on x86."""
    for core in range(cores):
        members = [core + n * cores for n in range(per_core)]
        put(root, {f"{CPU}/cpu{m}/topology/thread_siblings_list": ",".join(map(str, members)) for m in members})
    return root


def test_a_machine_that_tells_nothing_gives_notes_and_no_remedy(tmp_path):
    found = list(processor.findings(2, tmp_path, {0, 1}))
    assert {f.verdict for f in found} == {"ok", "note"}
    assert not any(f.fix for f in found)


@pytest.mark.parametrize(("governor", "verdict"), [("performance", "ok"), ("powersave", "disturbs")])
def test_clocks_are_to_stand_still(tmp_path, governor, verdict):
    put(tmp_path, {f"{CPU}/cpu{i}/cpufreq/scaling_governor": governor for i in range(2)})
    found = processor.governor(tmp_path)
    assert found.verdict == verdict
    assert governor in found.text


@pytest.mark.parametrize(
    ("files", "verdict", "fix"),
    [
        ({PSTATE: "0"}, "disturbs", f"echo 1 | sudo tee /{PSTATE}"),
        ({PSTATE: "1"}, "ok", ""),
        ({BOOST: "1"}, "disturbs", f"echo 0 | sudo tee /{BOOST}"),
        ({BOOST: "0"}, "ok", ""),
        ({}, "note", ""),
    ],
)
def test_turbo_is_turned_off_where_the_kernel_has_its_switch(tmp_path, files, verdict, fix):
    found = processor.turbo(put(tmp_path, files))
    assert (found.verdict, found.fix) == (verdict, fix)


def test_two_cpus_of_one_core_are_found_and_one_of_each_is_offered(tmp_path):
    topology(tmp_path, 4)
    found = processor.siblings(4, set(range(8)), tmp_path)
    assert (found.verdict, found.fix) == ("disturbs", "taskset -c 0-3 dpbench run ...")
    assert "8 CPUs are 4 cores" in found.text
    assert "--threads 4" in processor.siblings(8, set(range(8)), tmp_path).fix
    assert processor.siblings(4, {0, 1, 2, 3}, tmp_path).verdict == "ok"
    assert processor.siblings(2, {2, 6, 3}, tmp_path).fix == "taskset -c 2-3 dpbench run ..."


def test_threads_are_to_stay_on_cpus_of_one_node(tmp_path):
    eight = set(range(8))
    assert processor.affinity(8, eight, tmp_path).verdict == "ok"
    assert processor.affinity(2, eight, tmp_path).fix == "taskset -c 0-1 dpbench run ..."
    assert processor.affinity(9, eight, tmp_path).fix.startswith("--threads 8")
    put(tmp_path, {"sys/devices/system/node/node0/cpulist": "0-3", "sys/devices/system/node/node1/cpulist": "4-7"})
    assert "2 memory nodes" in processor.affinity(8, eight, tmp_path).text
    assert processor.affinity(4, {0, 1, 2, 3}, tmp_path).verdict == "ok"


V2 = {"proc/self/cgroup": "0::/jobs/mine", "sys/fs/cgroup/jobs/cpu.max": "150000 100000"}
V2_STOPPED = {**V2, "sys/fs/cgroup/jobs/cpu.stat": "nr_periods 50\nnr_throttled 7\nthrottled_usec 9"}
V1 = {
    "proc/self/cgroup": "4:memory:/\n1:cpu,cpuacct:/docker/x\n0::/",
    "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "400000",
    "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/cpu/docker/x/cpu.stat": "nr_periods 0\nnr_throttled 0",
}
UNLIMITED = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}


@pytest.mark.parametrize(
    ("files", "threads", "verdict", "says"),
    [
        (V2, 1, "ok", "1.5 CPUs"),
        (V2, 2, "disturbs", "1.5 CPUs"),
        (V2_STOPPED, 1, "disturbs", "stopped for it 7 times"),
        (V1, 4, "ok", "4 CPUs"),
        (V1, 5, "disturbs", "4 CPUs"),
        ({**V1, "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "-1"}, 9, "ok", "none"),
        (UNLIMITED, 9, "ok", "none"),
        ({}, 9, "ok", "none"),
    ],
)
def test_a_containers_share_is_found_in_the_group_that_sets_it(tmp_path, files, threads, verdict, says):
    found = processor.quota(threads, put(tmp_path, files))
    assert found.verdict == verdict
    assert says in found.text


def test_a_battery_disturbs_unless_something_is_plugged_in(tmp_path):
    put(tmp_path, {"sys/class/power_supply/AC/online": "0"})
    assert processor.battery(tmp_path).verdict == "disturbs"
    put(tmp_path, {"sys/class/power_supply/USB/online": "1"})
    assert processor.battery(tmp_path).verdict == "ok"
