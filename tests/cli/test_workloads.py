"""Axes as options: written once, taken by the commands that have them."""

from __future__ import annotations

from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.workloads import MODEL, OPTIONS, STEP, in_lists, takes, workloads
from dpbench.errors import DpbenchError
from dpbench.records import Workload


def test_every_axis_of_a_workload_is_an_option():
    assert set(OPTIONS) == {"implementation", *(f.name for f in fields(Workload))}
    assert {*MODEL, *STEP} <= set(OPTIONS)


def test_a_command_has_the_options_it_takes_beside_its_own_and_gets_them_together():
    seen = []
    made = typer.Typer()

    @made.command()
    @takes("model", "precision", "checkpointing")
    def command(axes: dict, own: int = 3) -> None:
        """A command."""
        seen.append((axes, own))

    assert CliRunner().invoke(made, ["-m", "a", "--model", "b", "--checkpointing", "--own", "4"]).exit_code == 0
    assert CliRunner().invoke(made, []).exit_code == 0
    assert CliRunner().invoke(made, ["--attention", "sdpa"]).exit_code == 2
    assert seen == [
        ({"model": ["a", "b"], "precision": None, "checkpointing": True}, 4),
        ({"model": None, "precision": None, "checkpointing": None}, 3),
    ]


def test_what_was_given_is_in_lists_and_what_was_not_stays_none():
    given = {
        "model": ["a(x=1,y=2),b"],
        "batch": ["8,max"],
        "max_norm": ["1,0.5"],
        "checkpointing": False,
        "trainable": ["lora:r=8,targets=A"],
        "norm": None,
    }
    assert in_lists(given) == {
        "model": ["a(x=1,y=2)", "b"],
        "batch": [8, "max"],
        "max_norm": [1.0, 0.5],
        "checkpointing": [False],
        "trainable": ["lora:r=8,targets=A"],
        "norm": None,
    }


def test_workloads_have_their_implementations_the_baseline_first():
    axes = {"model": ["synthetic:mlp"], "batch": ["4,8"], "implementation": ["bk"]}
    found = workloads(None, axes)
    assert [(w.batch, names) for w, names in found.items()] == [(4, ["nonprivate", "bk"]), (8, ["nonprivate", "bk"])]
    with pytest.raises(DpbenchError, match="give a suite"):
        workloads(None, {"model": None})


def test_advice_without_a_model_is_told():
    assert "give a --model" in str(CliRunner().invoke(app, ["advise"]).exception)
