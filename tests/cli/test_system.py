import json
import sys

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.system import lines, verdict
from dpbench.system import Finding, activity, noise


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(activity, "SECONDS", 0.05)
    monkeypatch.setattr(noise, "probe", lambda: noise.Noise(samples=500, spread=0.01, step=-0.002, in_turns=0.004))
    monkeypatch.setitem(sys.modules, "pynvml", None)


def test_it_says_what_there_is_what_disturbs_and_exits_0():
    done = CliRunner().invoke(app, ["system"])
    assert done.exit_code == 0
    labels = {line[:10].strip() for line in done.stdout.splitlines()}
    assert {"hardware", "software", "flags", "ok"} <= labels
    assert "20 rounds would tell 0.40 % between two" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 118


def test_as_json_it_is_one_object():
    made = json.loads(CliRunner().invoke(app, ["system", "--json"]).stdout)
    assert set(made) == {"environment", "findings", "noise"}
    assert made["environment"]["machine"]["id"]
    names = [f["name"] for f in made["findings"]]
    assert len(names) == len(set(names))
    assert names[0] == "governor"
    assert names[-1] == "noise"
    assert all(f["fix"] for f in made["findings"] if f["verdict"] == "disturbs")
    assert made["noise"]["in_turns"] == 0.004


def test_a_finding_is_followed_by_its_remedy():
    bad, good = Finding("turbo", "disturbs", "on", "switch it off"), Finding("swap", "ok", "none in use")
    assert lines(bad) == ["disturbs  turbo: on", "  fix     switch it off"]
    assert lines(good) == ["ok        swap: none in use"]
    assert verdict([bad, good]) == "what disturbs: turbo"
    assert verdict([good]) == "nothing that was looked at disturbs"
