"""Whatever becomes of those who listen, the run goes on or says where to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.results import latest, read

MODEL = "synthetic:mlp(width=8,depth=2)"
COMMAND = [
    sys.executable, "-c", "from dpbench.cli import main; main()", "run", "--model", MODEL, "--impl", "bk",
    "--budget", "0.01", "--rounds", "1", "--threads", "1",
]  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes as POSIX has them")


@pytest.mark.parametrize("how", ["--json", "lines"])
def test_a_closed_pipe_does_not_stop_the_run(tmp_path, how):
    options = ["--batch", "4,8", "--results", str(tmp_path), *([how] if how == "--json" else [])]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *options], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writing)
    assert done.returncode == 0
    assert "the run goes on, into the results file" in done.stderr
    assert "Traceback" not in done.stderr
    assert not read(latest(tmp_path)).missing


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_130_and_says_where_to_go_on(tmp_path, number):
    options = ["--batch", "4,8,16,32", "--results", str(tmp_path), "--budget", "2", "--rounds", "5"]
    process = subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    assert "cells on" in process.stdout.readline(), "it has begun, and has said where it writes"
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in out


def test_nohup_is_left_as_it_is(tmp_path):
    options = ["--batch", "4", "--results", str(tmp_path)]
    with subprocess.Popen(
        [*COMMAND, *options],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        assert process.stdout is not None
        assert "cells on" in process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.stdout.read()
    assert process.returncode == 0
    assert not read(latest(tmp_path)).missing


def test_resume_of_an_empty_file_says_what_to_do(tmp_path):
    (tmp_path / "x.jsonl").touch()
    said = str(CliRunner().invoke(app, ["run", "--resume", str(tmp_path / "x.jsonl")]).exception)
    assert said.startswith(f"{tmp_path}/x.jsonl has no whole header (0 bytes)")
    assert said.endswith("remove it, and start that run anew")
    assert "\n" not in said


def test_resume_with_other_options_says_what_to_give(tmp_path):
    done = CliRunner().invoke(app, ["run", "--resume", str(tmp_path / "x.jsonl"), "--rounds", "5"])
    assert "give --resume FILE alone" in str(done.exception)


def test_a_device_file_is_not_read():
    done = CliRunner().invoke(app, ["show", "/dev/zero"])
    assert "not a regular file" in str(done.exception)
