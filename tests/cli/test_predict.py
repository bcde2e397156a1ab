"""``dpbench predict`` and ``dpbench layers``."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.errors import DpbenchError

MLP = ["--model", "synthetic:mlp(width=32,depth=2)"]


def test_a_prediction_for_machines():
    done = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--impl", "bk", "--json"])
    assert done.exit_code == 0
    plain, private = json.loads(done.stdout)
    assert (plain["implementation"], private["implementation"]) == ("nonprivate", "bk")
    assert private["model"] == MLP[1]
    assert private["flops"]["analytic"] == private["flops"]["traced"]
    assert set(private["peak_bytes"]) == {"analytic", "traced", "kept", "transient", "resident", "in", "alive"}
    assert sum(private["peak_bytes"]["alive"].values()) == private["peak_bytes"]["traced"]
    assert private["flops"]["unexplained"] == {}
    assert private["seconds"] is None
    assert private["coverage"] == {"trained": 2 * (32 * 32 + 32), "frozen": 0, "refused": None}


def test_a_prediction_for_people():
    done = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4,8", "--impl", "bk,opacus"])
    assert done.exit_code == 0
    assert done.stdout.count("implementation") == 2
    assert "alive at the peak" in done.stdout
    assert "ghost norms" not in done.stdout, "at T = 1 there are no products in them"
    assert "4: per-sample gradients" in done.stdout


def test_times_on_a_card():
    done = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--impl", "bk", "--card", "t4", "--json"])
    plain, private = json.loads(done.stdout)
    assert private["card"] == "T4"
    seconds = private["seconds"]
    assert 0 < seconds["low"] <= seconds["expected"] <= seconds["high"]
    text = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--impl", "bk", "--card", "T4"]).stdout
    assert "a roofline of published peaks" in text


def test_a_precision_that_the_card_lacks_is_told():
    done = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--card", "T4", "--precision", "bf16"])
    assert "T4 has no bf16; it has fp32" in str(done.exception)


def test_where_the_paper_says_otherwise_both_are_shown():
    text = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--impl", "fastgradclip"]).stdout
    assert "the paper states 8 BTpd" in text
    assert "make 10" in text


def test_a_suite_can_be_predicted():
    done = CliRunner().invoke(app, ["predict", "smoke", "--impl", "nonprivate", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)


def test_nothing_to_look_at_is_told():
    done = CliRunner().invoke(app, ["predict"])
    assert "give a suite" in str(done.exception)


def test_layers_for_people_and_machines():
    arguments = ["layers", "--model", "synthetic:cnn", "--image-size", "16"]
    text = CliRunner().invoke(app, arguments).stdout
    assert "take the ghost norm by the rule 2T^2 < pd" in text
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    first = found[0]
    assert (first["T"], first["d"], first["p"], first["first"]) == (256, 27, 16, True)
    assert (first["2T^2"], first["pd"], first["less_space"]) == (2 * 256**2, 27 * 16, "instantiate")


def test_a_mistake_is_told():
    done = CliRunner().invoke(app, ["predict", "--model", "synthetic:mpl", "--batch", "4"])
    assert "Did you mean mlp" in str(done.exception)


def test_the_largest_batch_is_that_of_a_card():
    error = CliRunner().invoke(app, ["predict", *MLP, "--batch", "max", "--impl", "bk"]).exception
    assert isinstance(error, DpbenchError)
    assert "the largest batch is that of a card: give one with --card" in str(error)
