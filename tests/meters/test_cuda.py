import pytest
import torch

from dpbench.meters import meter_for

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
MB = 1 << 20


@pytest.fixture
def meter():
    return meter_for(torch.device("cuda"))


def test_the_peak_is_above_what_was_there_before(meter):
    before = torch.ones(8 * MB // 4, device="cuda")
    found = meter.memory(lambda: before[: MB // 4] + 1)
    assert found["peak_allocated"] == MB
    assert found["peak_reserved"] >= 9 * MB


def test_times_come_in_order_and_once(meter):
    x = torch.ones(512, 512, device="cuda")
    for _ in range(3):
        meter.time(lambda: x @ x)
    assert len(seconds := [s.seconds for s in meter.samples()]) == 3
    assert all(s > 0 for s in seconds)
    assert [s.seconds for s in meter.samples()] == []
