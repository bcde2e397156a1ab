"""``dpbench maxbatch``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.maxbatch import capacity_of
from dpbench.errors import DpbenchError

ARGUMENTS = ["maxbatch", "--model", "synthetic:mlp(width=64,depth=3)", "--impl", "bk,opacus"]


@pytest.mark.parametrize(
    ("text", "expected"), [("40GB", 40 * 10**9), ("40GiB", 40 * 2**30), ("1.5 MB", 1_500_000), ("800", 800)]
)
def test_sizes(text, expected):
    assert capacity_of(text) == expected


@pytest.mark.parametrize("text", ["", "forty", "0GB", "-1GB", "40 Gb"])
def test_what_is_no_size_is_said(text):
    with pytest.raises(DpbenchError, match="expected a size such as 40GB"):
        capacity_of(text)


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
