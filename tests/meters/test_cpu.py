import subprocess
import sys

import pytest
import torch
from torch import nn

from dpbench.meters import meter_for
from dpbench.meters.cpu import CpuMeter, peak_live

MB = 1 << 20


def floats(size):
    return torch.ones(size // 4)


def test_the_peak_is_what_was_alive_at_once():
    def one_after_the_other():
        for _ in range(5):
            floats(MB)

    def together():
        return [floats(MB) for _ in range(5)]

    assert peak_live(one_after_the_other) == pytest.approx(MB, rel=0.01)
    assert peak_live(together) == pytest.approx(5 * MB, rel=0.01)


def test_what_was_there_before_does_not_count():
    before = floats(8 * MB)
    assert peak_live(lambda: before[: MB // 4] + 1) == pytest.approx(MB, rel=0.01)
    assert peak_live(lambda: before.view(2, -1)) == 0


def test_what_autograd_saves_counts():
    layer, x = nn.Linear(256, 256), torch.ones(1024, 256)
    forward = peak_live(lambda: layer(x).relu().sum().item())
    assert forward >= 2 * x.nbytes
    with torch.no_grad():
        assert peak_live(lambda: layer(x)) == pytest.approx(x.nbytes, rel=0.01)


def test_buffers_inside_an_operation_count():
    x = torch.ones(1, 4, 64, 64, dtype=torch.float64)
    weight = torch.ones(4, 4, 5, 5, dtype=torch.float64)
    peak = peak_live(lambda: torch.nn.functional.conv2d(x, weight, padding=2))
    assert peak >= 25 * x.nbytes, "the unfolded input of a convolution without a kernel of its own"


def test_an_exception_leaves_nothing_switched_on():
    def fails():
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        peak_live(fails)
    assert peak_live(lambda: floats(MB)) == pytest.approx(MB, rel=0.01)


def test_times_come_in_order_and_once():
    done, meter = [], CpuMeter()
    for i in range(3):
        meter.time(lambda i=i: done.append(i))
    assert done == [0, 1, 2]
    seconds = [s.seconds for s in meter.samples()]
    assert len(seconds) == 3
    assert all(s >= 0 for s in seconds)
    assert [s.seconds for s in meter.samples()] == []


def test_both_memories_come_under_their_names():
    found = CpuMeter().memory(lambda: floats(MB))
    assert set(found) == {"peak_live", "peak_process"}
    assert found["peak_live"] == pytest.approx(MB, rel=0.01)
    assert found["peak_process"] > found["peak_live"]


PEAK = """
from dpbench.meters.cpu import peak_process, reset_peak_process
reset_peak_process()
before = peak_process()
held = bytearray(b"1") * (64 * 2**20)
print(peak_process() - before, len(held))
"""


def test_the_process_is_at_least_as_large_as_what_it_has_written():
    """A process of its own: a large one has pages that the system takes back meanwhile."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[0]) >= 32 * MB


def test_a_cpu_is_measured_by_the_cpus_meter():
    assert isinstance(meter_for(torch.device("cpu")), CpuMeter)
