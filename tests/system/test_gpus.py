import os
import sys
from pathlib import Path

import pytest

from dpbench.system import gpus
from tests.fake_nvml import card, install, process
from tests.fake_root import initial_namespace, put, stat

TORCH = {"cuda": "13.0", "driver": "580.10"}


def found(monkeypatch, one, root=Path("/nothing")):
    install(monkeypatch, one)
    return {f.name.removeprefix("GPU 0, "): f for f in gpus.findings(TORCH, root)}


def test_without_a_driver_it_says_so_and_no_more(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (only,) = gpus.findings(TORCH, Path("/nothing"))
    assert only.verdict == "note"


def test_a_card_as_it_should_be(monkeypatch, tmp_path):
    initial_namespace(tmp_path)
    verdicts = {name: f.verdict for name, f in found(monkeypatch, card(), tmp_path).items()}
    assert verdicts.pop("clocks") == "note", "NVML does not tell whether they are locked"
    assert set(verdicts) == {"CUDA", "persistence", "processes", "power", "memory faults", "throttling"}
    assert set(verdicts.values()) == {"ok"}


@pytest.mark.parametrize(
    ("said", "name", "verdict", "fix"),
    [
        ({"MigMode": [1, 1]}, "MIG", "note", "sudo nvidia-smi -i 0 -mig 0"),
        ({"PersistenceMode": 0}, "persistence", "disturbs", "sudo nvidia-smi -i 0 -pm 1"),
        ({"PowerManagementLimit": 60000}, "power", "disturbs", "sudo nvidia-smi -i 0 -pl 72"),
        ({"RemappedRows": (1, 0, 1, 0)}, "memory faults", "disturbs", "sudo nvidia-smi -i 0 --gpu-reset"),
        ({"RemappedRows": (1, 0, 0, 1)}, "memory faults", "disturbs", "another card"),
        (
            {"RemappedRows": None, "RetiredPagesPendingStatus": 1},
            *("memory faults", "disturbs", "sudo nvidia-smi -i 0 --gpu-reset"),
        ),
        ({"RemappedRows": None}, "memory faults", "note", ""),
        ({"CurrentClocksEventReasons": 0x40}, "throttling", "disturbs", "cooler air"),
        ({"CurrentClocksEventReasons": 0x4}, "throttling", "note", ""),
        ({"CurrentClocksEventReasons": 0x1}, "throttling", "ok", ""),
        ({"CurrentClocksEventReasons": None}, "throttling", "note", ""),
        ({"ApplicationsClock": 1200}, "clocks", "ok", ""),
        ({"ApplicationsClock": None}, "clocks", "note", "sudo nvidia-smi -i 0 -lgc"),
        ({"PersistenceMode": None}, "persistence", "note", ""),
        ({"PowerManagementLimit": None}, "power", "note", ""),
        ({"ComputeRunningProcesses": None}, "processes", "note", ""),
    ],
)
def test_what_disturbs_comes_with_its_remedy(monkeypatch, said, name, verdict, fix):
    one = found(monkeypatch, card(**said))[name]
    assert one.verdict == verdict
    assert one.fix.startswith(fix)
    assert bool(one.fix) == bool(fix)


def test_processes_are_named_where_their_ids_mean_the_same(monkeypatch, tmp_path):
    put(tmp_path, {"proc/90002/stat": stat(1, name="python train.py")})
    busy = card(ComputeRunningProcesses=[process(os.getpid()), process(90002), process(90003)])
    assert found(monkeypatch, busy, tmp_path)["processes"].verdict == "note"
    initial_namespace(tmp_path)
    assert found(monkeypatch, busy, tmp_path)["processes"].fix == (
        "end or wait for: python train.py (90002), process (90003)"
    )


@pytest.mark.parametrize(
    ("built", "newest", "verdict"),
    [
        ("13.0", 13000, "ok"),
        ("12.4", 13000, "ok"),
        ("12.8", 12040, "note"),
        ("13.0", 12080, "disturbs"),
        (None, 13000, "disturbs"),
    ],
)
def test_the_driver_has_to_know_the_cuda_of_torch(monkeypatch, built, newest, verdict):
    """13000 is how CUDA writes 13.0, 12080 12.8."""
    install(monkeypatch, card(), cuda=newest)
    first = next(iter(gpus.findings({"cuda": built, "driver": "580.10"}, Path("/nothing"))))
    assert first.name == "CUDA"
    assert first.verdict == verdict
