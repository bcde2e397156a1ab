"""What a repository begins with: every text is valid, and nothing of a pyproject.toml is touched."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer

from dpbench import suite
from dpbench.cli import app
from dpbench.errors import DpbenchError
from dpbench.rules import Rules, rules
from dpbench.scaffold import TEMPLATES, WORKFLOWS, filled, scaffold, with_rules

PYPROJECT = Path("pyproject.toml")
CI = Path("suites", "ci.toml")
GATE, NIGHTLY = WORKFLOWS / "dpbench.yml", WORKFLOWS / "dpbench-nightly.yml"
PROJECT = '[project]\nname = "mine"   # of mine\nversion = "1"\n'


def written(directory, **what):
    texts = scaffold(directory, **what)
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(text.encode())
    return texts


def steps(text):
    (job,) = pytest.importorskip("yaml").safe_load(text)["jobs"].values()
    return job["steps"]


def commands(text):
    """The lines that a shell runs."""
    return [line for step in steps(text) for line in step.get("run", "").splitlines()]


WHAT = [{}, {"implementation": "mine.py"}, {"model": "mine.py:build(width=3)"}]
WHAT += [{"implementation": "lib:opacus/hooks", "model": "synthetic:mlp"}]


@pytest.mark.parametrize("what", WHAT, ids=str)
def test_the_suite_has_a_few_cells_of_what_is_ones_own_counted_and_timed(tmp_path, what):
    written(tmp_path, **what)
    found = suite.load(str(tmp_path / CI))
    assert found.measure == ("traced", "seconds")
    cells = found.cells(["nonprivate", "bk_mixopt", "lib:opacus/hooks"])
    assert 1 <= len(cells) <= 4
    assert what.get("implementation", "bk_mixopt") in {c.implementation for c in cells}
    if "model" in what:
        assert {c.workload.model for c in cells} == {what["model"]}
        assert "nonprivate" in {c.implementation for c in cells}


def test_the_rules_are_the_usual_ones_written_out(tmp_path):
    written(tmp_path)
    found = rules(tmp_path / PYPROJECT)
    assert found.suite == ["ci"]
    assert found.allow.seconds == 0.03
    assert found.model_copy(update={"allow": Rules().allow}) == Rules()


@pytest.mark.parametrize("what", WHAT, ids=str)
@pytest.mark.parametrize("project", ["", PROJECT])
def test_the_workflows_are_valid_and_leave_no_placeholder(tmp_path, what, project):
    (tmp_path / PYPROJECT).write_text(project)
    texts = scaffold(tmp_path, **what)
    gate, nightly = commands(texts[GATE]), commands(texts[NIGHTLY])
    assert "dpbench gate --base origin/${{ github.base_ref }}" in gate
    assert steps(texts[GATE])[0]["with"]["fetch-depth"] == 0
    verified = [line for line in gate if line.startswith("dpbench verify")]
    own = what.get("implementation")
    assert verified == ([f"dpbench verify --impl {own}"] if own else [])
    for lines in (gate, nightly):
        assert ("pip install -e ." in lines) == bool(project)
    for text in texts.values():
        assert not re.search(r"@\w+@", text)


def test_they_run_on_pull_requests_and_by_the_clock(tmp_path):
    yaml = pytest.importorskip("yaml")
    texts = scaffold(tmp_path)
    # YAML 1.1 reads the key "on" as true; GitHub does not.
    assert yaml.safe_load(texts[GATE])[True] == "pull_request"
    nightly = yaml.safe_load(texts[NIGHTLY])
    assert nightly[True]["schedule"][0]["cron"].count(" ") == 4
    (job,) = nightly["jobs"].values()
    assert "self-hosted" in job["runs-on"]
    limit = next(m[1] for line in commands(texts[NIGHTLY]) if (m := re.match(r"timeout (\d+)m dpbench run ci ", line)))
    assert int(limit) < job["timeout-minutes"]


def test_a_name_that_a_shell_would_take_apart_is_quoted(tmp_path):
    texts = scaffold(tmp_path, implementation="my own: #1.py")
    assert "dpbench verify --impl 'my own: #1.py'" in commands(texts[GATE])
    assert tomllib.loads(texts[CI])["axes"]["implementation"] == ["my own: #1.py"]


def test_every_command_and_option_in_them_exists(tmp_path):
    known = typer.main.get_command(app).commands
    texts = scaffold(tmp_path, implementation="mine.py")
    for line in [line for path in (GATE, NIGHTLY) for line in commands(texts[path])]:
        for name, arguments in re.findall(r"\bdpbench ([a-z]+)([^;|]*)", line):
            options = {o for p in known[name].params for o in (*p.opts, *p.secondary_opts)}
            assert set(re.findall(r"(?<= )--[a-z-]+", arguments)) <= options, line


def test_what_is_installed_is_what_the_project_says(tmp_path):
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert "pip install -r requirements.txt" in commands(scaffold(tmp_path)[GATE])
    (tmp_path / "setup.py").write_text("")
    assert "pip install -r requirements.txt -e ." in commands(scaffold(tmp_path)[GATE])


@pytest.mark.parametrize("before", [PROJECT, PROJECT.rstrip("\n"), PROJECT.replace("\n", "\r\n"), "[tool.dpbench]\n"])
def test_a_pyproject_stays_as_it_is_and_the_rules_come_after_it(before):
    after = with_rules(before, PYPROJECT)
    assert after is not None
    assert after.startswith(before)
    assert "\n".join(after.splitlines()).endswith((TEMPLATES / "gate.toml").read_text().rstrip("\n"))
    assert after.count("\n") == after.count("\r\n") or "\r" not in after
    gate = tomllib.loads(after)["tool"]["dpbench"].pop("gate")
    assert Rules.model_validate(gate).suite == ["ci"]


@pytest.mark.parametrize("table", ["[tool.dpbench.gate]\n", '[tool.dpbench]\ngate.suite = "mine"\n'])
def test_rules_that_are_there_stay(table):
    assert with_rules(PROJECT + table, PYPROJECT) is None


def test_a_pyproject_that_takes_no_table_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DpbenchError, match=r"takes no \[tool.dpbench.gate\] at its end .* write them as tables"):
        with_rules("tool.dpbench = {}\n", PYPROJECT)
    (tmp_path / PYPROJECT).write_text("[torn")
    with pytest.raises(DpbenchError, match="is not TOML: .*; mend it, and run dpbench init again"):
        scaffold(tmp_path)
    (tmp_path / PYPROJECT).write_bytes(b"\xff")
    with pytest.raises(DpbenchError, match="is not TOML"):
        scaffold(tmp_path)


def test_a_paragraph_that_lacks_a_value_is_left_out():
    template = "a @one@\n\nb @two@\nc\n\nd actions/checkout@v4 @one@\n"
    assert filled(template, {"one": "1"}) == "a 1\n\nd actions/checkout@v4 1\n"
