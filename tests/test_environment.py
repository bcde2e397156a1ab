import json
import subprocess

from dpbench import environment as module
from dpbench.environment import describe, environment


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


def test_what_is_not_installed_is_null(monkeypatch):
    monkeypatch.setattr(module, "LIBRARIES", ("no-such-library",))
    assert environment()["versions"]["no-such-library"] is None


def test_the_description_has_what_a_reader_of_figures_asks_for():
    found = environment()
    text = describe(found)
    assert found["machine"]["cpu"] in text
    assert found["versions"]["torch"] in text
    assert "\n" not in text


def test_the_revision_says_whether_files_were_changed(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    assert module._revision(tmp_path) is None
    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "first")
    assert len(module._revision(tmp_path)) == 40
    (tmp_path / "file").write_text("2")
    assert module._revision(tmp_path).endswith("+changes")
