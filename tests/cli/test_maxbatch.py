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
