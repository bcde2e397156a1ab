import pytest

from dpbench import suite
from dpbench.errors import DpbenchError

GOOD = 'model = "transformers:gpt2"\nbatch = [4, 8]\n'
GOOD_AXES = f"[axes]\n{GOOD}"


def mistakes(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(DpbenchError) as caught:
        suite.load(path)
    assert str(path) in str(caught.value)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_all_mistakes_are_listed_at_once_each_with_its_key(tmp_path):
    text = """
titel = "Quick"
rounds = 0
budget_s = "x"
memory = "4 cows"
[axes]
batch = [4, "8", 0]
precision = "fp61"
seqlen = 3
layers = []
[[models]]
layers = true
[[models]]
model = ""
[[exclude]]
[[include]]
model = "a:x"
max_norm = -1
"""
    assert mistakes(tmp_path, text) == [
        "rounds is 0, expected at least 1",
        "budget_s is 'x', expected a valid number",
        "memory is '4 cows', expected a size such as 40GB (1e9 bytes) or 40GiB (2^30 bytes)",
        "axes.batch[1] is '8', expected a valid integer or 'max'",
        "axes.batch[2] is 0, expected at least 1",
        "axes.layers is [], expected at least one value",
        "axes.precision is 'fp61', expected 'fp32', 'tf32', 'bf16' or 'amp-bf16'",
        "axes.seqlen is unknown, did you mean seq_len or seed?",
        "models[0].layers is True, expected a valid integer",
        "models[1].model is '', expected a name",
        "include[0].max_norm is -1, expected greater than 0",
        "titel is unknown, did you mean title?",
        "models[0].model is missing, expected a value",
        "include[0].batch is missing, expected a value",
        "exclude[0] is empty and would match everything, expected a key",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "axes.model is missing, expected a model such as transformers:gpt2"),
        ('[axes]\nmodel = "a:x"', "axes.batch is missing, expected at least one batch size"),
        ('[[models]]\nmodel = "a:x"', "models[0].batch is missing, expected a value here or in [axes]"),
        ("axes = 3", "axes is 3, expected a table of axes"),
        ("models = 3", "models is 3, expected a list of blocks"),
        (f"[axes]\n{GOOD}[[exclude]]\nbatch = 16", "exclude[0] matches no cell of the suite: batch = [16]"),
        (
            f"[axes]\n{GOOD}[[exclude]]\nbatch = 8\nmodel = 'timm:*'",
            "exclude[0] matches no cell of the suite",
        ),
        (
            f"[axes]\n{GOOD}image_size = 32",
            "axes.image_size means nothing to any of the models: transformers:gpt2",
        ),
        (
            f"[axes]\n{GOOD}[[models]]\nmodel = 'a:x'\nzzzz = 1",
            "models[0].zzzz is unknown, expected one of",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path, text, mistake):
    assert any(line.startswith(mistake) for line in mistakes(tmp_path, text))


def test_what_is_not_toml_is_said_with_its_line(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("a = 1\nb = \n")
    with pytest.raises(DpbenchError, match=r"s.toml is not TOML: .*line 2"):
        suite.load(path)


def test_what_is_true_or_false_and_what_may_be_left_to_the_model(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(GOOD_AXES + "checkpointing = [true, false]\nloss_chunk = [64, 'default']\n")
    found = {(c.workload.checkpointing, c.workload.loss_chunk) for c in suite.load(path).cells(["bk"])}
    assert found == {(True, 64), (True, None), (False, 64), (False, None)}
    assert mistakes(tmp_path, GOOD_AXES + "checkpointing = 'yes'\nloss_chunk = 0\n") == [
        "axes.checkpointing is 'yes', expected true or false",
        "axes.loss_chunk is 0, expected at least 1",
    ]
    path.write_text(GOOD_AXES + "checkpointing = [true, false]\n[[exclude]]\ncheckpointing = true\n")
    assert {c.workload.checkpointing for c in suite.load(path).cells(["bk"])} == {False}


def test_mistakes_in_options_are_called_by_the_option():
    with pytest.raises(DpbenchError) as caught:
        suite.from_options({"batch": 0, "precision": "fp8", "seq_len": None})
    assert [line.strip() for line in str(caught.value).splitlines()] == [
        "options: 3 mistakes",
        "--batch is 0, expected at least 1",
        "--precision is 'fp8', expected 'fp32', 'tf32', 'bf16' or 'amp-bf16'",
        "--model is missing, expected a model such as transformers:gpt2",
    ]
    with pytest.raises(DpbenchError, match="--seq-len means nothing to any of the models: timm:x"):
        suite.from_options({"model": "timm:x", "batch": 1, "seq_len": 8})


def test_the_largest_batch_is_asked_for_and_excluded_by_its_name(tmp_path):
    path = tmp_path / "s.toml"
    text = 'memory = "4GB"\n[axes]\nmodel = "a:x"\nbatch = [8, "max"]\nlogical_batch = [64, "default"]\n'
    path.write_text(text + '[[exclude]]\nbatch = "max"\nlogical_batch = 64\n')
    loaded = suite.load(path)
    assert loaded.memory == "4GB"
    found = {(c.workload.batch, c.workload.logical_batch) for c in loaded.cells(["bk"])}
    assert found == {(8, 64), (8, None), ("max", None)}
