import pytest
import torch

from dpbench.meters import meter_for
from dpbench.meters.cuda import CudaMeter

real = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
MB = 1 << 20


class FakeCuda:
    """Writes down what is asked of it; its clock, in milliseconds, moves by what is done."""

    def __init__(self):
        self.log, self.clock = [], 0.0

    def __getattr__(self, name):
        figures = {"memory_allocated": 500.0, "max_memory_allocated": 1700.0, "max_memory_reserved": 4096.0}

        def asked(device=None):
            self.log.append(name)
            return figures.get(name)

        return asked

    def Event(self, enable_timing):
        assert enable_timing
        return FakeEvent(self)

    def step(self):
        self.log.append("step")
        self.clock += 250.0


class FakeEvent:
    def __init__(self, cuda):
        self._cuda = cuda

    def record(self, stream):
        self._cuda.log.append("event")
        self.at = self._cuda.clock

    def elapsed_time(self, end):
        assert "synchronize" in self._cuda.log, "before the device is done there is no time"
        return end.at - self.at


@pytest.fixture
def fake(monkeypatch):
    cuda = FakeCuda()
    monkeypatch.setattr(torch, "cuda", cuda)
    return cuda


def test_events_stand_around_each_step_and_are_read_after_one_wait(fake):
    meter = CudaMeter(torch.device("cuda:0"))
    for _ in range(3):
        meter.time(fake.step)
    samples = meter.samples()
    assert [s.seconds for s in samples] == [0.25] * 3
    assert [round(s.at - samples[0].at, 6) for s in samples] == [0.0, 0.25, 0.5]
    log = [entry for entry in fake.log if entry != "current_stream"]
    assert log == ["event", "step", "event"] * 3 + ["synchronize"]
    assert meter.samples() == []


def test_the_peak_is_of_the_step_alone_and_read_when_the_device_is_done(fake):
    found = CudaMeter(torch.device("cuda:0")).memory(fake.step)
    assert (found["peak_allocated"], found["peak_reserved"]) == (1200.0, 4096.0)
    log = fake.log
    assert log.index("empty_cache") < log.index("memory_allocated") < log.index("step")
    assert log.index("reset_peak_memory_stats") == log.index("step") - 1
    assert log[log.index("step") + 1] == "synchronize"


@pytest.fixture
def meter():
    return meter_for(torch.device("cuda"))


@real
def test_the_peak_is_above_what_was_there_before(meter):
    before = torch.ones(8 * MB // 4, device="cuda")
    found = meter.memory(lambda: before[: MB // 4] + 1)
    assert found["peak_allocated"] == MB
    assert found["peak_reserved"] >= 9 * MB


@real
def test_times_come_in_order_and_once(meter):
    x = torch.ones(512, 512, device="cuda")
    for _ in range(3):
        meter.time(lambda: x @ x)
    assert len(seconds := [s.seconds for s in meter.samples()]) == 3
    assert all(s > 0 for s in seconds)
    assert [s.seconds for s in meter.samples()] == []
