"""``dpbench layers``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.errors import DpbenchError

CNN = ["layers", "--model", "synthetic:cnn(channels=8,depth=2)", "--image-size", "8"]


def run(*arguments):
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.exception
    return done


def objects(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def mistake(*arguments):
    error = CliRunner().invoke(app, [*arguments]).exception
    assert isinstance(error, DpbenchError)
    return str(error)


def rows(text):
    """The lines of the table, by the number of their layer."""
    return {line.split()[0]: line for line in text.splitlines() if line.startswith("  ") and line.split()[0].isdigit()}


def test_a_line_for_each_layer_in_the_order_of_the_forward():
    text = run(*CNN).stdout
    assert text.startswith("synthetic:cnn(channels=8,depth=2) B=1 px=8\n")
    found = rows(text)
    assert [line.split()[1] for line in found.values()] == ["0.weight", "3.weight", "8.weight"]
    # 64 positions, 27 = 3 x 9 of the input, 8 channels.
    assert found["1"].split()[2:7] == ["convolution", "64", "27", "8", "8.19"]
    assert "instantiate" in found["1"]
    assert found["3"].split()[2:8] == ["linear", "1", "8", "10", "2", "80"]
    assert "ghost" in found["3"]


def test_the_first_ghost_layer_and_their_number_are_said():
    text = run(*CNN).stdout
    assert "the first layer with a ghost norm by that rule: 3, 8.weight" in text
    assert "1 of 3 take the ghost norm by the rule 2T^2 < pd" in text


def test_where_none_takes_it_that_is_said():
    text = run("layers", "--model", "synthetic:mlp(width=8,depth=2)", "--seq-len", "64").stdout
    assert "the first layer with a ghost norm by that rule: none" in text
    assert "0 of 2 take the ghost norm" in text


def test_objects_for_machines():
    first, _, last = objects(*CNN)
    assert (first["model"], first["batch"], first["name"]) == ("synthetic:cnn(channels=8,depth=2)", 1, "0.weight")
    assert (first["rule"], first["T"], first["d"], first["p"], first["groups"]) == ("convolution", 64, 27, 8, 1)
    assert (first["first"], last["first"]) == (True, False)
    assert (first["2T^2"], first["pd"]) == (2 * 64**2, 27 * 8)
    assert [first[rule] for rule in ("less_space", "fewer_flops", "fewer_flops_reused")] == ["instantiate"] * 3
    assert first["flops"]["product"] == 2 * 64 * 27 * 8
    assert first["flops"]["ghost_norm"] == 2 * 64**2 * (27 + 8)
    assert first["flops"]["ghost_norm_picked"] <= first["flops"]["ghost_norm"]
    assert last["flops"] == {"product": 2 * 8 * 10, "ghost_norm": 0, "ghost_norm_picked": 0}


def test_flops_grow_with_the_batch_and_decisions_do_not():
    one, four = objects(*CNN), objects(*CNN, "--batch", "4")
    for small, large in zip(one, four, strict=True):
        assert large["flops"] == {what: 4 * n for what, n in small["flops"].items()}
        assert [large[k] for k in ("2T^2", "pd", "less_space")] == [small[k] for k in ("2T^2", "pd", "less_space")]


def test_only_trained_matrices_are_listed():
    found = objects("layers", "--model", "synthetic:mlp(width=8,depth=3)", "--trainable", "last")
    assert [layer["name"] for layer in found] == ["4.weight"]


def test_a_layer_of_groups_says_so(tmp_path):
    path = tmp_path / "grouped.py"
    path.write_text(
        "import torch\n"
        "def build(workload):\n"
        "    model = torch.nn.Conv2d(4, 4, 3, groups=2)\n"
        "    losses = lambda m, b: m(b['x']).square().sum((1, 2, 3))\n"
        "    return model, losses, lambda size, seed: {'x': torch.ones(size, 4, 5, 5)}\n"
    )
    assert "convolution, 2 groups" in run("layers", "--model", f"{path}:build").stdout


def test_a_tied_weight_says_how_often_it_is_used():
    tiny = "transformers:gpt2(n_embd=16,n_head=2,vocab_size=60,n_positions=16)"
    text = run("layers", "--model", tiny, "--layers", "1", "--seq-len", "8").stdout
    assert text.count("transformer.wte.weight (used 2 times)") == 2


def test_a_lookup_multiplies_nothing():
    first, *_ = objects("layers", "--model", "synthetic:transformer(width=16,heads=2,vocab=50)", "--seq-len", "8")
    assert first["rule"] == "embedding"
    assert first["flops"] == {"product": 0, "ghost_norm": 0, "ghost_norm_picked": 0}


def test_a_shared_weight_is_decided_over_all_of_its_uses(tmp_path):
    """2 T^2 = 128 < pd = 256 < 2 (2T)^2 = 512: bk_mixopt instantiates it."""
    path = tmp_path / "shared.py"
    path.write_text(
        "import torch\n"
        "class Twice(torch.nn.Linear):\n"
        "    def forward(self, x): return super().forward(super().forward(x))\n"
        "def build(workload):\n"
        "    losses = lambda m, b: m(b['x']).square().sum((1, 2))\n"
        "    return Twice(16, 16), losses, lambda size, seed: {'x': torch.ones(size, 8, 16)}\n"
    )
    assert {layer["less_space"] for layer in objects("layers", "--model", f"{path}:build")} == {"instantiate"}


RESNET = ["layers", "--model", "torchvision:resnet18", "--norm", "group"]


@pytest.mark.parametrize(
    ("size", "first"), [(224, "11, layer3.0.conv1.weight"), (512, "16, layer4.0.conv1.weight")], ids=["224", "512"]
)
def test_the_first_ghost_layer_of_resnet18_lies_deeper_in_larger_images(size, first):
    text = run(*RESNET, "--image-size", str(size)).stdout
    assert f"the first layer with a ghost norm by that rule: {first}" in text


@pytest.mark.parametrize("name", ["it.png", "it.svg", "it.pdf"])
def test_a_picture_is_written_beside_the_list(tmp_path, name):
    done = run(*CNN, "--plot", str(tmp_path / name))
    assert (tmp_path / name).stat().st_size > 1000
    assert f"{tmp_path / name} written" in done.stderr
    assert "3 take the ghost norm" in done.stdout


def test_the_picture_says_what_the_list_says(tmp_path):
    path = tmp_path / "it.svg"
    found = json.loads(run(*CNN, "--batch", "4", "--json", "--plot", str(path)).stdout)
    assert len(found) == 3, "nothing else is on stdout"
    text = path.read_text()
    assert "first ghost norm: 3, 8.weight" in text
    assert "synthetic:cnn(channels=8,depth=2) px=8" in text, "the batch decides nothing"


@pytest.mark.parametrize("name", ["it.jpg", "it"])
def test_another_format_is_told_with_those_that_there_are(tmp_path, name):
    assert "expected a name that ends in .png, .svg or .pdf" in mistake(*CNN, "--plot", str(tmp_path / name))
    assert not (tmp_path / name).exists()


def test_a_missing_directory_is_told(tmp_path):
    path = tmp_path / "missing" / "it.png"
    assert f"there is no directory {tmp_path / 'missing'}" in mistake(*CNN, "--plot", str(path))


def test_two_workloads_are_no_picture(tmp_path):
    path = tmp_path / "it.png"
    told = mistake("layers", "--model", "synthetic:cnn", "--image-size", "8,16", "--plot", str(path))
    assert "a picture shows one workload, got 2; give one model, T and image size" in told
    assert not path.exists()


def test_two_workloads_are_two_lists():
    text = run("layers", "--model", "synthetic:cnn", "--image-size", "8,16").stdout
    assert text.count("the first layer with a ghost norm") == 2


def test_a_model_without_trained_matrices_has_no_picture_and_no_traceback(tmp_path):
    arguments = ["layers", "--model", "synthetic:mlp(width=8,depth=2)", "--trainable", "biases"]
    assert "0 of 0 take the ghost norm" in run(*arguments).stdout
    done = CliRunner().invoke(app, [*arguments, "--plot", str(tmp_path / "it.png")])
    assert done.exit_code == 0 or isinstance(done.exception, DpbenchError)


def test_nothing_to_look_at_is_told():
    assert "give a suite" in mistake("layers")
