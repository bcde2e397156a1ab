"""``dpbench maxbatch``."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from dpbench.cli import app

ARGUMENTS = ["maxbatch", "--model", "synthetic:mlp(width=64,depth=3)", "--impl", "bk,opacus"]


def test_for_people_and_machines():
    text = CliRunner().invoke(app, [*ARGUMENTS, "--memory", "2MB"]).stdout
    assert "in 2.00 MB" in text
    found = json.loads(CliRunner().invoke(app, [*ARGUMENTS, "--memory", "2MB", "--json"]).stdout)
    assert [f["implementation"] for f in found] == ["nonprivate", "bk", "opacus"]
    assert found[0]["max_batch"] >= found[1]["max_batch"] > found[2]["max_batch"] > 0
    assert all(f["bytes"]["need"] <= 2 * 10**6 < f["bytes"]["next"] for f in found)


def test_where_not_one_example_fits():
    text = CliRunner().invoke(app, [*ARGUMENTS, "--memory", "1kB"]).stdout
    assert "none fits" in text


def test_on_real_tensors_the_traced_batch_is_tried_in_processes_of_their_own():
    arguments = [
        "maxbatch",
        "--model",
        "synthetic:mlp(width=64,depth=3)",
        "--impl",
        "bk",
        "--memory",
        "2MB",
        "--on",
        "real",
    ]
    done = CliRunner().invoke(app, [*arguments, "--step", "train", "--optimizer", "adamw", "--json"])
    assert done.exit_code == 0
    plain, private = json.loads(done.stdout)
    for found in (plain, private):
        assert found["max_batch"] > 0
        assert abs(found["max_batch"] - found["traced"]) <= 0.05 * found["traced"], "a trace sees no buffers of kernels"
        assert found["bytes"]["need"] <= 2_000_000
    assert "traced B" in CliRunner().invoke(app, arguments).stdout


def test_how_it_is_found_is_one_of_two_ways():
    done = CliRunner().invoke(app, [*ARGUMENTS, "--memory", "2MB", "--on", "paper"])
    assert "unknown way of finding it 'paper'" in str(done.exception)


def test_a_memory_or_a_card_and_not_both():
    for given in ([], ["--memory", "1GB", "--card", "T4"]):
        done = CliRunner().invoke(app, [*ARGUMENTS, *given])
        assert "expected either --memory" in str(done.exception)
    text = CliRunner().invoke(app, [*ARGUMENTS, "--card", "T4"]).stdout
    assert "of an T4" not in text
    assert "15.1 GB of T4 (of 15.6 GB)" in text
