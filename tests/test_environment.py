import hashlib
import json
import subprocess

import pytest
import torch

from dpbench import environment as module
from dpbench.environment import describe, environment
from tests.fake_nvml import card, install


def test_it_is_plain_json_and_names_every_library():
    found = environment()
    assert json.loads(json.dumps(found)) == found
    assert {"python", "torch", "numpy", "cuda", "driver"} <= set(found["versions"])
    assert found["versions"]["torch"]
    assert found["machine"]["cpu"]
    assert found["dpbench"]["version"]


def test_the_machine_has_the_same_id_every_time_and_another_with_other_hardware(monkeypatch):
    first = environment()["machine"]["id"]
    assert environment()["machine"]["id"] == first
    monkeypatch.setattr(module, "_cpu", lambda: "another CPU")
    assert environment()["machine"]["id"] != first


def test_the_id_of_a_machine_is_that_of_every_version_so_far(monkeypatch):
    hardware = {
        **{"cpu": "a CPU", "architecture": "x86_64", "system": "Linux", "cores": 4, "logical_cores": 8},
        **{"memory_gib": 16, "gpus": [{"name": "NVIDIA L4", "memory_gib": 22}]},
    }
    monkeypatch.setattr(module, "_hardware", lambda: hardware)
    canonical = (
        '{"architecture":"x86_64","cores":4,"cpu":"a CPU","gpus":[{"memory_gib":22,"name":"NVIDIA L4"}],'
        '"logical_cores":8,"memory_gib":16,"system":"Linux"}'
    )
    assert environment()["machine"] == {"id": hashlib.sha256(canonical.encode()).hexdigest()[:12], **hardware}


def test_gpus_are_asked_for_without_cuda_and_their_limits_are_settings(monkeypatch):
    fake = install(monkeypatch, card(), card(MemoryInfo=None, PowerManagementLimit=None), driver=b"580.10")
    found = environment()
    assert found["machine"]["gpus"] == [
        {"name": "NVIDIA L4", "memory_gib": 24},
        {"name": "NVIDIA L4", "memory_gib": None},
    ]
    assert found["versions"]["driver"] == "580.10"
    assert found["flags"]["gpu_power_limit_watts"] == [72.0, None]
    assert fake.open == 0


def test_flags_that_are_not_set_are_recorded_as_such(monkeypatch):
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    flags = environment()["flags"]
    assert flags["OMP_PROC_BIND"] == "true"
    assert flags["KMP_BLOCKTIME"] is None
    assert isinstance(flags["deterministic"], bool)


def test_what_is_not_installed_is_null(monkeypatch):
    monkeypatch.setattr(module, "LIBRARIES", ("no-such-library",))
    assert environment()["versions"]["no-such-library"] is None


def test_the_description_has_what_a_reader_of_figures_asks_for():
    found = environment()
    text = describe(found)
    assert found["machine"]["cpu"] in text
    assert found["versions"]["torch"] in text
    assert "\n" not in text


def test_therevision_says_whether_files_were_changed(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    assert module.revision(tmp_path) is None
    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "first")
    assert len(module.revision(tmp_path)) == 40
    (tmp_path / "file").write_text("2")
    assert module.revision(tmp_path).endswith("+changes")


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="newer torch alone has this flag")
def test_a_script_may_say_in_the_newer_way_how_float32_is_multiplied():
    torch.backends.fp32_precision = "tf32"
    try:
        assert environment()["flags"]["float32_matmul_precision"] is None
    finally:
        torch.backends.fp32_precision = "none"
    assert environment()["flags"]["float32_matmul_precision"] == "highest"
