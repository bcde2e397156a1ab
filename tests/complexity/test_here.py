"""The speeds of this machine: which are taken, and when there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dpbench.cards import Card, card, keep
from dpbench.complexity.here import here, roofline
from dpbench.complexity.trace import Operation, Trace
from dpbench.records import Roofline, Workload

CPU = Card(
    name="here",
    memory=2**34,
    bandwidth=1e9,
    launch=1e-3,
    peaks={"fp32": 1e9},
    torch_names=(),
    source="made up",
    threads=torch.get_num_threads(),
)
"""A GFLOP, a gigabyte or a thousand launches are a second."""

GPU = replace(CPU, name="here:cuda", torch_names=("NVIDIA L4",), threads=None)
STEP = Trace((Operation("aten.mm", "1", "w", "", "float32", 1, 3 * 10**9, 10**9),))
W = Workload(model="m", batch=4)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def cuda(monkeypatch):
    """Two devices of one kind."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    names = {"name": "NVIDIA L4"}
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: names["name"])
    return names


def test_the_seconds_of_a_step_worked_by_hand():
    keep(CPU)
    assert roofline(STEP, W) == Roofline("here", 3.0, 3.0, pytest.approx(3 + 1 + 0.001))


def test_there_are_none_where_nothing_was_calibrated():
    assert roofline(STEP, W) is None


@pytest.mark.parametrize("threads", [torch.get_num_threads() + 1, None])
def test_nor_with_other_threads_or_where_it_is_not_known_with_how_many(threads):
    keep(replace(CPU, threads=threads))
    assert roofline(STEP, W) is None


def test_nor_in_a_precision_that_was_not_measured():
    keep(CPU)
    product = replace(STEP.operations[0], dtype="bfloat16")
    assert roofline(Trace((product,)), replace(W, precision="bf16")) is None


def test_nor_where_the_calibration_is_damaged():
    keep(CPU).write_text("{")
    assert roofline(STEP, W) is None


def test_nor_of_a_logical_batch_of_which_the_trace_is_a_part():
    keep(CPU)
    assert roofline(STEP, replace(W, logical_batch=8)) is None


def test_a_gpu_has_the_peaks_of_its_maker_until_it_is_calibrated(cuda):
    assert here("cuda:1") is card("L4")
    keep(GPU)
    assert here("cuda:1") == GPU
    assert roofline(STEP, replace(W, device="cuda")).card == "here:cuda"


def test_a_calibration_is_of_one_kind_of_gpu(cuda):
    keep(GPU)
    cuda["name"] = "Tesla T4"
    assert here("cuda") is card("T4")


def test_there_are_none_of_a_gpu_whose_peaks_nobody_told(cuda):
    cuda["name"] = "another"
    assert roofline(STEP, replace(W, device="cuda")) is None
