"""``dpbench advise``, on small networks."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.complexity.survey import workers

ASKED = ["advise", "--impl", "bk,ghostclip,opacus", "--model"]
SMALL = [*ASKED, "synthetic:mlp(width=16,depth=1)"]
TRANSFORMER = [*ASKED, "synthetic:transformer(width=16,heads=2,vocab=50,depth=1)", "--T", "8"]


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Processes take seconds to start; that they find the same is tested once, with the survey."""
    monkeypatch.setattr("dpbench.complexity.advise.workers", lambda: workers(1))


def objects(*arguments, network=SMALL):
    done = CliRunner().invoke(app, [*network, *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_for_people_there_is_a_sentence_for_each_card():
    done = CliRunner().invoke(app, [*SMALL, "--card", "T4", "--card", "L4", "--examples", "1000", "--price", "T4=0.35"])
    assert done.exit_code == 0, done.output
    t4, l4 = done.stdout.split("\n\nL4: ")
    assert "examples at a time" in t4
    assert "at a cost of" in t4
    assert "at a cost of" not in l4
    assert "Alive at its peak" in l4


def test_for_machines_the_advice_is_the_best_of_those_that_clip_and_it_fits():
    (advice,) = objects(
        "--card", "T4", "--logical-batch", "64", "--examples", "640", "--epochs", "2", network=TRANSFORMER
    )
    private = [o for o in advice["offers"] if o["implementation"] != "nonprivate"]
    assert advice["advice"] == private[0]
    assert advice["advice"]["need_bytes"] <= advice["capacity"]
    assert all(o["batch"] * o["physical_batches"] >= 64 for o in advice["offers"])
    hours = advice["advice"]["hours"]
    assert hours["expected"] == pytest.approx(20 * advice["advice"]["step_seconds"]["expected"] / 3600)
    assert {o["implementation"] for o in advice["offers"]} == {"nonprivate", "bk", "ghostclip", "opacus"}


def test_what_else_could_be_turned_is_tried_where_the_card_can():
    """A T4 has neither TF32 nor bfloat16."""
    a100, t4 = objects("--card", "A100-40GB", "--card", "T4")
    assert [k["change"] for k in a100["knobs"]] == ["precision tf32", "precision amp-bf16"]
    assert t4["knobs"] == []
    assert all(k["offer"]["examples_per_s"] > 0 for k in a100["knobs"])


def test_a_precision_that_one_card_lacks_leaves_the_others():
    done = CliRunner().invoke(app, [*SMALL, "--card", "T4", "--card", "L4", "--precision", "amp-bf16", "--json"])
    t4, l4 = json.loads(done.stdout)
    assert t4["advice"] is None
    assert t4["refused"]["bk"] == "T4 has no amp-bf16"
    assert l4["advice"]
    done = CliRunner().invoke(app, [*SMALL, "--card", "T4", "--precision", "amp-bf16"])
    assert "T4 has no amp-bf16" in str(done.exception)


def test_where_nothing_fits_the_exit_code_is_three_and_the_reason_is_told():
    done = CliRunner().invoke(
        app, ["advise", "--model", "synthetic:mlp(width=65536,depth=2)", "--card", "T4", "--impl", "opacus"]
    )
    assert done.exit_code == 3
    assert "example" in done.stdout


def test_several_workloads_are_told():
    done = CliRunner().invoke(app, ["advise", "--model", "synthetic:mlp", "--precision", "fp32,bf16"])
    assert "advice is for one workload, got 2" in str(done.exception)


def test_advice_is_confirmed_where_the_card_is():
    done = CliRunner().invoke(app, [*SMALL, "--card", "T4", "--confirm"])
    assert "T4: not confirmed, as it is not here" in done.stdout
    done = CliRunner().invoke(app, [*SMALL, "--card", "T4", "--confirm", "--json"])
    assert json.loads(done.stdout)
