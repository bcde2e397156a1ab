"""``dpbench verify`` as its users call it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from tests.conformance.mutants import mutant

ONE = ["--case", "linear/two-axes"]
FAST = ["--case", "linear/two-axes,property/independence"]


def verify(*arguments):
    return CliRunner().invoke(app, ["verify", *arguments])


def test_for_people():
    done = verify("--impl", "bk,nonprivate", *FAST)
    assert done.exit_code == 0, done.output
    assert "bk  BK algorithm, float64, tolerance 1e-08, R at the median norm" in done.stdout
    assert "independence: refuses: it gives no norms" in done.stdout
    assert "bk                  2        0        0        0      0   2" in done.stdout


def test_for_machines():
    done = verify("--impl", "bk,nonprivate", *FAST, "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(f["implementation"], f["check"], f["ruling"]) for f in found} == {
        ("bk", "linear/two-axes", "right"),
        ("bk", "property/independence", "right"),
        ("nonprivate", "linear/two-axes", "right"),
        ("nonprivate", "property/independence", "refuses"),
    }
    (declared,) = [f["declared"] for f in found if f["ruling"] == "refuses"]
    assert declared == {"ruling": "refuses", "reason": "it takes no norms"}
    assert all(f["torch"] and f["date"] and f["reason"] and f["reported"] for f in found)


def test_what_is_wrong_and_not_declared_exits_1_and_leaves_a_script(tmp_path):
    name = mutant(tmp_path, after="out.grads['0.weight'] *= 1.01")
    done = verify("--impl", name, *ONE, "--scripts", str(tmp_path / "scripts"))
    assert done.exit_code == 1
    assert "! two-axes: wrong: 1.0e-02 in 0.weight; an example moves the sum by " in done.stdout
    assert "1 worse than declared" in done.stderr
    (script,) = (tmp_path / "scripts").iterdir()
    assert subprocess.run([sys.executable, str(script)], capture_output=True).returncode == 1


def test_better_than_declared_exits_1_too(tmp_path):
    name = mutant(tmp_path)
    (tmp_path / "mutant0.toml").write_text('[wrong]\n"linear/two-axes" = "it was"')
    done = verify("--impl", name, *ONE)
    assert done.exit_code == 1
    assert "1 better than declared; take what is better out of the file" in done.stderr


def test_what_supports_denies_is_declared_by_it(tmp_path):
    name = mutant(tmp_path)
    text = (tmp_path / "mutant0.py").read_text()
    (tmp_path / "mutant0.py").write_text(text.replace("Supports(groups=True, units=True)", "Supports()"))
    done = verify("--impl", name, "--case", "batch/units,threshold/per-layer")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("refuses: ") == 2


def test_what_is_found_can_be_declared(tmp_path, monkeypatch):
    from dpbench.conformance import checks

    few = dict(list(checks.kit().items())[:2])
    monkeypatch.setattr(checks, "checks", lambda workload: few)
    name = mutant(tmp_path, after="out.grads['0.weight'] *= 1.01")
    assert verify("--impl", name, "--declare").exit_code == 0
    text = (tmp_path / "mutant0.toml").read_text()
    assert '[wrong]\n"linear/two-axes" = "off by 1.0e-02 in 0.weight"\n' in text
    assert verify("--impl", name, *ONE).exit_code == 0


def test_a_library_that_is_missing_is_left_out_of_patterns_and_a_mistake_by_name(tmp_path, monkeypatch):
    from dpbench import registry

    monkeypatch.setattr(registry.load("lib:opacus/ghost"), "NEEDS", "opacus: pip install it")
    done = verify("--impl", "lib:opacus/ghost*,bk", *ONE)
    assert done.exit_code == 0
    assert "left out: lib:opacus/ghost needs opacus: pip install it" in done.stderr
    done = verify("--impl", "lib:opacus/ghost", *FAST)
    assert "lib:opacus/ghost needs opacus: pip install it" in str(done.exception)


OWN = """
import torch

def build(workload):
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    losses = lambda m, b: {loss}
    return model, losses, lambda size, seed: {{
        "x": torch.randn(size, 5, generator=torch.Generator().manual_seed(seed)), "y": torch.arange(size) % 2}}
"""
ENTROPY = "torch.nn.functional.cross_entropy(m(b['x']), b['y'], reduction='none')"


def test_a_model_of_ones_own_at_the_gradient_and_at_the_whole_step(tmp_path):
    (tmp_path / "mine.py").write_text(OWN.format(loss=ENTROPY))
    done = verify("--impl", "opacus", "--model", f"{tmp_path}/mine.py:build", "--json")
    assert done.exit_code == 0, done.output
    found = {f["check"]: f["ruling"] for f in map(json.loads, done.stdout.splitlines())}
    assert {name.partition("/")[0] for name in found} == {"gradient", "property", "step"}
    assert set(found.values()) == {"right"}


def test_a_model_that_mixes_examples_is_refused_and_so_not_right(tmp_path):
    (tmp_path / "mine.py").write_text(OWN.format(loss=f"{ENTROPY} / len(b['y'])"))
    done = verify("--impl", "bk", "--model", f"{tmp_path}/mine.py:build", "--case", "gradient/batch")
    assert done.exit_code == 1
    assert "examples are mixed" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--case", "linaer"], 5, "matches none of"),
        (["--impl", "bk2"], 2, "Did you mean bk"),
        (["--model", "nothere.py:build"], 2, "no file nothere.py"),
        (["--model", "synthetic:mlp,synthetic:cnn"], 2, "got 2 models or sizes; expected one"),
        (["--layers", "2"], 2, "got --layers without --model"),
    ],
)
def test_mistakes_in_what_was_asked(arguments, code, message):
    command = [sys.executable, "-c", "from dpbench.cli import main; main()", "verify", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_cases_are_listed():
    done = CliRunner().invoke(app, ["list", "cases"])
    assert "linear/two-axes" in done.stdout
    assert "step/noise" in done.stdout
