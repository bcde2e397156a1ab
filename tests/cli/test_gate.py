"""``dpbench gate``: exit codes with simulated children, and a real process against a git reference."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.results import read
from tests.cli.test_ab import BUILD, real
from tests.faked_command import ROOT, done, words
from tests.test_worktree import git

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux shows them")

SUITE = """
[axes]
model = "synthetic:mlp(width=8,depth=2)"
batch = 4
implementation = ["bk", "opacus"]
"""
TIMED = f'rounds = 2\nmeasure = ["traced", "seconds"]\n{SUITE}'
COUNTED = f'measure = ["traced"]\n{SUITE}'


def project(path, suite=COUNTED, rules=""):
    """A checkout whose rules name its suite."""
    path.mkdir(exist_ok=True)
    (path / "ci.toml").write_text(suite)
    (path / "pyproject.toml").write_text(f'[tool.dpbench.gate]\nsuite = "ci.toml"\n{rules}')
    git(path, "init", "--quiet")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "first")
    return path


PAIR, THREE, ALONE = ("base", "new"), ("base", "control", "new"), ("new",)
BASE = ("--base", "HEAD")


@pytest.mark.parametrize(
    ("suite", "rules", "more", "seats", "how", "code", "said"),
    [
        (COUNTED, "", BASE, PAIR, {}, 0, "passes"),
        (TIMED, "rounds = 6", BASE, THREE, {}, 0, "seconds: 2 same"),
        (TIMED, "rounds = 6", BASE, THREE, {"factors": {("new", "bk"): 1.3}}, 1, "1.30x slower"),
        (TIMED, "rounds = 6", BASE, THREE, {"factors": {("new", "bk"): 0.7}}, 0, "1.43x faster"),
        (
            TIMED,
            "rounds = 6",
            (*BASE, "--fail-on", "faster"),
            THREE,
            {"factors": {("new", "bk"): 0.7}},
            1,
            "the base is out of date",
        ),
        (TIMED, "rounds = 5", BASE, THREE, {}, 2, "at least min_rounds"),
        (COUNTED, "", (), PAIR, {}, 2, "there is no base: give --base REF"),
        (COUNTED, "roundz = 5", BASE, PAIR, {}, 2, "roundz is unknown, did you mean rounds"),
        (COUNTED, "", ("--base", "nowhere"), PAIR, {}, 2, "nowhere is neither a results file nor a git reference"),
        (COUNTED, "", ("--base", "no.jsonl"), ALONE, {}, 2, "there is no file no.jsonl; measure and write it with"),
        (COUNTED, "", (*BASE, "--accept"), PAIR, {}, 2, "--accept writes a results file"),
        (COUNTED, "", BASE, PAIR, {"trouble": {("new", "trace", "bk", 0): "dies"}}, 3, "SIGSEGV"),
        (COUNTED, "", BASE, PAIR, {"trouble": {("new", "trace", "bk", 0): "refused"}}, 1, "newly refused"),
        (TIMED, "min_rounds = 2\nrounds = 4", BASE, THREE, {}, 0, "passes, with a warning"),
        (TIMED, 'min_rounds = 2\nrounds = 4\non_inconclusive = "fail"', BASE, THREE, {}, 4, "cannot be told"),
        (COUNTED, "", (*BASE, "-k", "vmap"), PAIR, {}, 5, "matches none"),
    ],
)
def test_each_exit_code_through_a_real_process(tmp_path, suite, rules, more, seats, how, code, said):
    root = project(tmp_path / "project", suite, rules)
    found = done("gate", *more, cwd=root, seats=seats, **how)
    assert (found.returncode, "Traceback" in found.stderr) == (code, False), found.stderr + found.stdout
    assert said in found.stdout + found.stderr
    assert len(git(root, "worktree", "list").splitlines()) == 1


def test_what_was_accepted_is_the_base_of_the_next(tmp_path):
    root = project(tmp_path / "project", rules='base = "base.jsonl"')
    accepted = done("gate", "--accept", cwd=root, seats=ALONE)
    assert (accepted.returncode, accepted.stdout) == (0, ""), accepted.stderr
    assert accepted.stderr.endswith("accepted: base.jsonl\n")
    assert len(read(root / "base.jsonl").records) == 3
    assert done("gate", cwd=root, seats=ALONE).returncode == 0
    only = done("gate", "-k", "bk", "--json", cwd=root, seats=ALONE)
    assert only.returncode == 0
    assert {c["implementation"] for c in json.loads(only.stdout)["changes"]} == {"bk"}
    broken = {("new", "trace", "bk", 0): "dies"}
    before = (root / "base.jsonl").read_bytes()
    refused = done("gate", "--accept", cwd=root, seats=ALONE, trouble=broken)
    assert (refused.returncode, "not accepted" in refused.stderr) == (3, True)
    assert (root / "base.jsonl").read_bytes() == before
    (root / "ci.toml").write_text(COUNTED.replace('"bk", ', ""))
    missing = done("gate", cwd=root, seats=ALONE)
    assert missing.returncode == 1
    assert "the cell is missing" in missing.stdout


def test_a_count_that_changed_with_torch_is_not_blamed_on_the_change(tmp_path):
    root = project(tmp_path / "project", rules='base = "base.jsonl"')
    done("gate", "--accept", cwd=root, seats=ALONE)
    text = re.sub(r',"crc":"[0-9a-f]{8}"', "", (root / "base.jsonl").read_text())
    (root / "base.jsonl").write_text(text.replace('"flops":9', '"flops":8'))
    assert done("gate", cwd=root, seats=ALONE).returncode == 1
    (root / "base.jsonl").write_text(text.replace('"flops":9', '"flops":8').replace("2.9.0", "2.8.0"))
    blamed = done("gate", cwd=root, seats=ALONE)
    assert blamed.returncode == 4
    assert "counted with other software (torch 2.8.0 -> 2.9.0); count it anew: --base REF" in blamed.stdout
    (root / "base.jsonl").write_text(text.replace("2.9.0", "2.8.0"))
    assert done("gate", cwd=root, seats=ALONE).returncode == 0


def test_github_gets_annotations_and_a_summary_and_json_stays_alone_on_stdout(tmp_path):
    root = project(tmp_path / "project")
    summary = tmp_path / "summary.md"
    found = done(
        *("gate", *BASE, "--json"),
        cwd=root,
        seats=PAIR,
        trouble={("new", "trace", "bk", 0): "dies"},
        environment={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)},
    )
    assert json.loads(found.stdout)["exit_code"] == found.returncode == 3
    (annotation,) = [line for line in found.stderr.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error title=dpbench gate::bk on")
    assert summary.read_text().startswith("## dpbench gate: does not pass")


@pytest.mark.parametrize("base", [BASE, ("--base", "base.jsonl", "--accept")], ids=["reference", "file"])
def test_ctrl_c_ends_it_with_130_and_leaves_no_worktree(tmp_path, base):
    root = project(tmp_path / "project")
    seats = PAIR if base is BASE else ALONE
    command = words("gate", *base, trouble={("new", "trace", "opacus", 0): "sleeps"}, seats=seats)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    assert "cells" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in err) == (130, True)
    assert len(git(root, "worktree", "list").splitlines()) == 1
    assert not (root / "base.jsonl").exists()


def test_a_results_file_is_the_base_of_one_suite_and_is_accepted_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(project(tmp_path / "project"))
    for given, message in (
        (["ci.toml", "ci.toml", "--base", "x.jsonl"], "a results file is the base of one suite"),
        (["--base", "x.jsonl", "--accept", "-k", "bk"], "--accept writes all cells of a suite"),
    ):
        assert message in str(CliRunner().invoke(app, ["gate", *given]).exception)


MINE = """
from dpbench.interface import Supports
from dpbench.registry import load

TITLE, MODULES, SUPPORTS, PRIVATE = "Mine", "1", Supports(), True


def prepare(model, losses, clip):
    return load("{}").prepare(model, losses, clip)
"""
OWN = """
measure = ["traced"]
[axes]
model = "model.py:build"
batch = 4
implementation = "mine.py"
"""


def test_a_real_change_is_held_against_the_commit_before_it(tmp_path):
    """The implementation counts more FLOPs than it did; it and the model are found relative to either tree."""
    root = project(tmp_path / "project", OWN)
    (root / "src").mkdir()
    for name, text in (("mine.py", MINE.format("bk")), ("model.py", BUILD), ("src/paused.py", "WIDTH = 3\n")):
        (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "second")
    (root / "mine.py").write_text(MINE.format("ghostclip"))
    process = real("gate", *BASE, "--json", cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    found = json.loads(out)
    assert {c["quantity"] for c in found["tripped"]} >= {"flops"}
    assert all(c["implementation"] == "mine.py" for c in found["tripped"])
    assert found["failed"] == found["unknown"] == []
    assert len(git(root, "worktree", "list").splitlines()) == 1


def test_a_cell_that_the_suite_of_the_base_has_and_this_tree_lost_does_not_pass(tmp_path):
    root = project(tmp_path / "project")
    (root / "ci.toml").write_text(COUNTED.replace('["bk", "opacus"]', '["bk"]'))
    lost = done("gate", *BASE, cwd=root, seats=PAIR)
    assert (lost.returncode, "opacus" in lost.stdout, "the cell is missing" in lost.stdout) == (1, True, True)
    meant = (root / "pyproject.toml").read_text() + 'on_missing = "warn"\n'
    (root / "pyproject.toml").write_text(meant)
    assert done("gate", *BASE, cwd=root, seats=PAIR).returncode == 0
    assert done("gate", *BASE, "-k", "bk", cwd=root, seats=PAIR).returncode == 0


def test_a_base_that_broke_holds_nothing(tmp_path):
    root = project(tmp_path / "project")
    broke = done("gate", *BASE, cwd=root, seats=PAIR, trouble={("base", "trace", "bk", 0): "dies"})
    assert broke.returncode == 4
    assert "nothing can be held against it" in broke.stdout


def test_a_base_that_is_cut_off_is_none(tmp_path):
    root = project(tmp_path / "project", rules='base = "base.jsonl"')
    done("gate", "--accept", cwd=root, seats=ALONE)
    whole = (root / "base.jsonl").read_bytes()
    for content in (whole[:-20], b"".join(whole.splitlines(keepends=True)[:1])):
        (root / "base.jsonl").write_bytes(content)
        cut = done("gate", cwd=root, seats=ALONE)
        assert (cut.returncode, "is no base" in cut.stderr) == (2, True), cut.stderr


def test_what_both_sides_would_run_from_this_tree_is_refused(tmp_path):
    path = tmp_path / "project" / "mine.py"
    root = project(tmp_path / "project", suite=COUNTED.replace('"bk", "opacus"', f'"{path}"'))
    path.write_text("")
    refused = done("gate", *BASE, cwd=root, seats=PAIR)
    assert (refused.returncode, "absolute path" in refused.stderr) == (2, True)


def test_too_few_rounds_are_said_before_anything_is_measured(tmp_path):
    root = project(tmp_path / "project", suite=TIMED)
    few = done("gate", *BASE, "--rounds", "2", cwd=root, seats=THREE)
    assert (few.returncode, "at least min_rounds, which is 6" in few.stderr) == (2, True)
    assert not (root / "results").exists()
