"""``dpbench ab``: what is asked, exit codes with simulated children, and real processes where those matter."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.results import read
from tests.faked_command import ROOT, done, words

MODEL = "synthetic:mlp(width=8,depth=2)"
WORDS = ("ab", "--base", "bk", "--new", "opacus", "--model", MODEL, "--batch", "4", "--measure", "seconds")
SLOWER = {("new", "opacus"): 1.3}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux shows them")

NO_ROOM = {("new", "turns", "opacus", 0): "out of memory"}
"""Beside the others, where alone there is."""


@pytest.mark.parametrize(
    ("more", "trouble", "factors", "code", "said"),
    [
        ([], {}, {}, 0, "seconds: 1 same"),
        (["--fail-on", "worse"], {}, SLOWER, 1, "1.30x slower"),
        (["--fail-on", "slowr"], {}, {}, 2, "Did you mean slower"),
        ([], {("new", "turns", "opacus", 2): "dies"}, {}, 3, "newly failed"),
        (["--measure", "memory,seconds"], NO_ROOM, {}, 4, "a smaller batch"),
        (["-k", "B=9"], {}, {}, 5, "matches none of 1 cells"),
    ],
)
def test_each_exit_code_through_a_real_process(tmp_path, more, trouble, factors, code, said):
    found = done(*WORDS, "--rounds", "6", *more, cwd=tmp_path, trouble=trouble, factors=factors)
    assert (found.returncode, "Traceback" in found.stderr) == (code, False), found.stderr
    assert said in found.stdout + found.stderr


def test_json_is_all_there_is_on_stdout(tmp_path):
    more = "--measure", "memory,seconds", "--json", "--results", tmp_path
    found = done(*WORDS, *more, trouble=NO_ROOM)
    changes = json.loads(found.stdout, parse_constant=pytest.fail)
    assert {c["quantity"]: c["verdict"] for c in changes}["seconds"] == "not comparable"


def test_twenty_rounds_are_taken_where_nothing_is_said_also_of_a_suite(tmp_path):
    (tmp_path / "mine.toml").write_text(f'rounds = 2\n[axes]\nmodel = "{MODEL}"\nbatch = 4\n')
    given = ("ab", "--base", "bk", "--new", "opacus", "mine.toml", "--measure", "seconds", "--json")
    changes = json.loads(done(*given, cwd=tmp_path).stdout)
    assert {c["quantity"]: c["rounds"] for c in changes}["seconds"] == 20


def test_ctrl_c_ends_it_with_130_and_keeps_what_was_finished(tmp_path):
    trouble = {("new", "turns", "opacus", 2): "sleeps"}
    command = words(*WORDS, "--results", tmp_path, trouble=trouble)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    assert "1 pairs of cells" in process.stderr.readline()
    process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: 0 pairs of cells were finished" in err
    assert all(len(read(path).missing) == 1 for path in tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--base", "bk", "--new", "bk"], "nothing to compare on"),
        (["--base", "bk", "--new", str(ROOT), *WORDS[5:]], "expected two implementations .* or two checkouts"),
        (["--base", "bk", "--new", "bkk", *WORDS[5:]], "Did you mean bk"),
        (["--base", "bk", "--new", "nowhere.py", *WORDS[5:]], "no file nowhere.py"),
        ([*WORDS[1:], "--impl", "vmap"], "--impl means nothing beside"),
        ([*WORDS[1:], "--rounds", "0"], "--rounds is 0, expected at least 1"),
        ([*WORDS[1:], "--min-effect", "-1"], "expected a share such as 0.03"),
        ([*WORDS[1:-1], "second"], "--measure is 'second'"),
    ],
)
def test_a_mistake_is_a_message(given, message):
    error = CliRunner().invoke(app, ["ab", *given]).exception
    assert re.search(message, str(error)), str(error)
    assert getattr(error, "exit_code", None) == 2


MINE = """
import time
from dpbench.interface import Supports
from dpbench.registry import load
from paused import PAUSE

TITLE, MODULES, SUPPORTS, PRIVATE = "Mine", "1", Supports(), True


class Step:
    def __init__(self, *given):
        self._step = load("opacus").prepare(*given)
        self.close = self._step.close

    def __call__(self, batch, **rest):
        time.sleep(PAUSE)
        return self._step(batch, **rest)


prepare = Step
"""
BUILD = """
import torch
from paused import WIDTH


def build(workload):
    def losses(model, batch):
        return model(batch["x"]).square().sum(1)

    def batches(size, seed):
        return {"x": torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(seed))}

    return torch.nn.Linear(WIDTH, 2), losses, batches
"""


def real(*given, cwd, **how):
    code = "from dpbench.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *given], cwd=cwd, env=environment, text=True, **how)


def checkout(path, pause):
    """A small package in src, an implementation and a model that use it, beside them."""
    (path / "src").mkdir(parents=True)
    (path / "mine.py").write_text(MINE)
    (path / "model.py").write_text(BUILD)
    (path / "src" / "paused.py").write_text(f"PAUSE, WIDTH = {pause}, 3\n")
    return path


def test_of_two_real_checkouts_the_slower_one_is_called_slower(tmp_path):
    """Files are found relative to each checkout, and what they import in its own src."""
    checkout(tmp_path / "base", 0.002)
    checkout(tmp_path / "new", 0.008)
    process = real(
        "ab", "--base", "base", "--new", "new", "--model", "model.py:build", "--batch", "4", "--impl", "mine.py",
        "--rounds", "6", "--budget", "0.02", "--measure", "seconds", "--fail-on", "slower", "--json",
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    (change,) = [c for c in json.loads(out) if c["quantity"] == "seconds"]
    assert (change["implementation"], change["verdict"], change["rounds"]) == ("mine.py", "slower", 12), (
        "6, and 6 once more"
    )
    assert change["ratio"] > 1.5
    assert 0.5 < change["control"] < 1.5


def descendants(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def gone(process):
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_whatever_ends_it_nothing_is_left_running(tmp_path, number, code):
    process = real(*WORDS, "--rounds", "500", "--budget", "5", "--threads", "1", cwd=tmp_path, stderr=subprocess.PIPE)
    found = []
    deadline = time.monotonic() + 120
    # Three servers, and one child of each at work.
    while len(found) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
        found = descendants(process.pid)
    assert len(found) >= 6
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    deadline = time.monotonic() + 20
    while not all(map(gone, found)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, found))
