"""``dpbench predict`` and ``dpbench layers``."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from dpbench.cards import card
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
    assert set(private["peak_bytes"]) >= {"analytic", "traced", "kept", "transient", "resident", "in", "alive"}
    parts = ("activations", "kept", "transient", "gradients")
    assert sum(private["peak_bytes"][part] for part in parts) == private["peak_bytes"]["analytic"]
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


def test_the_largest_batch_of_a_card_is_that_of_each_implementation():
    arguments = ["predict", "--model", "synthetic:mlp(width=2048,depth=4)", "--batch", "max", "--card", "T4"]
    done = CliRunner().invoke(app, [*arguments, "--impl", "opacus", "--json"])
    assert done.exit_code == 0
    capacity = card("T4").capacity
    plain, opacus = json.loads(done.stdout)
    assert plain["batch"] > opacus["batch"] > 1
    for found in (plain, opacus):
        assert found["workload"]["batch"] == found["batch"]
        assert 0.9 * capacity < found["peak_bytes"]["traced"] + found["peak_bytes"]["resident"] <= capacity
    text = CliRunner().invoke(app, [*arguments, "--impl", "opacus"]).stdout
    assert text.startswith("synthetic:mlp(width=2048,depth=4) B=max  (")
    assert "ratio of FLOPs: for each example" in text
    assert str(opacus["batch"]) in text


def test_a_model_too_large_for_a_card_refuses_with_both_sizes():
    arguments = ["predict", "--model", "synthetic:mlp(width=40000,depth=4)", "--batch", "max", "--card", "T4"]
    plain, bk = json.loads(CliRunner().invoke(app, [*arguments, "--impl", "bk", "--json"]).stdout)
    for found in (plain, bk):
        assert found["flops"] is None
        assert found["coverage"]["refused"].endswith(f"bytes, T4 has {card('T4').capacity} for tensors")


def test_another_way_of_tracing_is_told():
    error = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--impl", "bk", "--on", "nonsense"]).exception
    assert isinstance(error, DpbenchError)
    assert "unknown way of tracing 'nonsense'. Known: real, trace" in str(error)


def test_real_tensors_can_be_asked_for_and_it_is_said():
    arguments = ["predict", *MLP, "--batch", "4", "--impl", "bk", "--on", "real"]
    assert [p["on"] for p in json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)] == ["real", "real"]
    assert "bk: traced on real tensors of small batches" in CliRunner().invoke(app, arguments).stdout


def test_an_unknown_card_is_told_with_one_like_it():
    error = CliRunner().invoke(app, ["predict", *MLP, "--batch", "4", "--card", "T44"]).exception
    assert "unknown card 'T44'. Did you mean T4" in str(error)


def test_every_command_takes_checkpointing_and_loss_chunk():
    model = ["--model", "transformers:gpt2(n_embd=16,n_head=2,n_layer=2,vocab_size=60)", "--T", "8"]
    axes = ["--checkpointing", "--loss-chunk", "4"]
    asked = ["predict", *model, *axes, "--batch", "2", "--impl", "opacus,bk", "--json"]
    _, opacus, bk = json.loads(CliRunner().invoke(app, asked).stdout)
    assert (opacus["workload"]["checkpointing"], opacus["workload"]["loss_chunk"]) == (True, 4)
    assert opacus["flops"]["traced"] > opacus["flops"]["kernels"]
    assert "Switch checkpointing (and loss_chunk) off" in bk["coverage"]["refused"]
    found = json.loads(CliRunner().invoke(app, ["layers", *model, *axes, "--json"]).stdout)
    assert [use["T"] for use in found if use["name"] == "transformer.wte.weight"] == [8, 4, 4]
    asked = ["maxbatch", *model, "--impl", "opacus", "--memory", "1MB", "--json"]
    (_, plain), (_, again) = (json.loads(CliRunner().invoke(app, [*asked, *extra]).stdout) for extra in ([], axes))
    assert 0 < plain["max_batch"] < again["max_batch"]
