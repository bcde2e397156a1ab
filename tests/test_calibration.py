"""Calibration, on a clock that is told what each call takes."""

from __future__ import annotations

import pytest
import torch

from dpbench.calibration import CALLS, COPIED, SIZES, calibrate
from dpbench.cards import Card, calibration_file, card, keep
from dpbench.complexity.roofline import seconds
from dpbench.complexity.trace import Operation, Trace
from dpbench.errors import DpbenchError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr("dpbench.calibration.SIZES", {"cpu": 8})
    before = torch.get_num_threads()
    *said, found = calibrate("cpu", 1, timed=lambda call: (call(), 0.5)[1])
    torch.set_num_threads(before)
    assert said == ["fp64", "fp32", "bf16", "bandwidth", "launch"]
    return found


def test_speeds_follow_from_the_time_of_a_call(measured):
    assert measured.peaks == {"fp64": 2 * 4**3 / 0.5, "fp32": 2 * 8**3 / 0.5, "bf16": 2 * 8**3 / 0.5}
    assert measured.bandwidth == 2 * COPIED / 0.5
    assert measured.launch == 0.5 / (2 * CALLS)
    assert "CPU, 1 threads" in measured.source
    assert measured.threads == 1


def test_it_is_kept_and_found_as_the_card_here(measured):
    path = keep(measured)
    assert path == calibration_file("here")
    found = card("HERE")
    assert isinstance(found, Card)
    assert found == measured
    product = Operation("aten.mm", "1", "w", "", "float32", 1, 10**9, 10)
    assert seconds(Trace((product,)), found, "fp32").low == pytest.approx(10**9 / found.peaks["fp32"])


def test_who_has_not_calibrated_is_told_how():
    with pytest.raises(DpbenchError, match="not calibrated .cpu.; run: dpbench calibrate --device cpu"):
        card("here")
    with pytest.raises(DpbenchError, match="run: dpbench calibrate --device cuda"):
        card("here:cuda")


def test_a_damaged_file_is_told(measured):
    keep(measured).write_text("{")
    with pytest.raises(DpbenchError, match="holds no calibration"):
        card("here")


def test_a_device_that_is_not_there_is_told():
    with pytest.raises(DpbenchError, match="unknown device"):
        list(calibrate("tpu9"))


def test_the_clock_gives_positive_times(monkeypatch):
    monkeypatch.setattr("dpbench.calibration.SIZES", dict.fromkeys(SIZES, 8))
    monkeypatch.setattr("dpbench.calibration.SECONDS", 1e-3)
    monkeypatch.setattr("dpbench.calibration.COPIED", 1000)
    *_, found = calibrate()
    assert min(found.bandwidth, found.launch, *found.peaks.values()) > 0
