from dataclasses import fields

import pytest

from dpbench import suite
from dpbench.errors import DpbenchError
from dpbench.records import Cell, Workload
from tests.records_for_tests import workload

KNOWN = ["bk", "bk_mixopt", "nonprivate", "tf_privacy"]
QUICK = """
title = "Quick"
rounds = 4
budget_s = 2
[axes]
batch = [4, 8]
seq_len = [64, 128]
image_size = 32
[[models]]
model = "transformers:gpt2"
layers = 4
[[models]]
model = ["timm:vit_small", "timm:resnet18"]
batch = 2
[[exclude]]
implementation = "tf_*"
batch = 8
[[include]]
implementation = "bk"
model = "synthetic:mlp"
batch = 64
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="quick"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return path

    return write


def test_axes_are_crossed_and_blocks_override_them(written):
    quick = suite.load(written(QUICK))
    assert (quick.name, quick.title, quick.rounds, quick.budget_s) == ("quick", "Quick", 4, 2.0)
    gpt2 = [workload("transformers:gpt2", b, seq_len=t, layers=4) for t in (64, 128) for b in (4, 8)]
    images = [workload(f"timm:{name}", 2, image_size=32) for name in ("vit_small", "resnet18")]
    groups = quick.groups(KNOWN)
    assert list(groups) == [*gpt2, *images, workload("synthetic:mlp", 64)]


def test_libraries_and_ablations_are_run_only_where_they_are_asked_for(written):
    known = [*KNOWN, "lib:one/fast", "lib:one/slow", "lib:two", "ablation:bk"]

    def names(asked):
        text = f'[axes]\nmodel = "a:x"\nbatch = 1\nimplementation = {asked}'
        return [c.implementation for c in suite.load(written(text)).cells(known)]

    assert names('"all"') == names('"*"') == KNOWN
    assert names('["bk", "lib:*"]') == ["bk", *known[4:7]]
    assert names('["ablation:*", "bk"]') == ["ablation:bk", "bk"]
    assert names('["lib*", "ablation*"]') == known[4:]
    assert names('"a*"') == []
    assert names('"lib:one/*"') == known[4:6]
    assert names('"lib:two"') == ["lib:two"]
    assert [c.implementation for c in suite.load(written('[axes]\nmodel = "a:x"\nbatch = 1')).cells(known)] == KNOWN


def test_exclusions_take_cells_and_inclusions_add_them(written):
    groups = suite.load(written(QUICK)).groups(KNOWN)
    for w, cells in groups.items():
        expected = ["bk"] if w.batch == 64 else KNOWN[:3] if w.batch == 8 else KNOWN
        assert [c.implementation for c in cells] == expected


def test_the_baseline_comes_first_and_is_added(written):
    for cells in suite.load(written(QUICK)).groups(KNOWN, baseline="nonprivate").values():
        names = [c.implementation for c in cells]
        assert names[0] == "nonprivate"
        assert names.count("nonprivate") == 1


def test_every_cell_comes_once_and_workloads_stay_together(written):
    text = '[axes]\nmodel = ["a:x", "a:x"]\nbatch = [1, 2, 1]\nimplementation = ["bk", "bk*", "all"]'
    cells = suite.load(written(text)).cells(KNOWN)
    assert len(cells) == len(set(cells)) == 8
    order = [c.workload for c in cells]
    assert order == sorted(order, key=order.index)
    assert [c.implementation for c in cells[:4]] == KNOWN


def test_every_field_of_a_workload_is_an_axis():
    values = {
        "int": 3,
        "int | None": 3,
        "float": 2.5,
        "str": "x",
        "str | None": "x",
        "int | Literal['max']": "max",
        "bool": True,
    }
    choices = {k: v[-1] for k, v in suite.validate.__globals__["CHOICES"].items()}
    axes = {f.name: choices.get(f.name, values[str(f.type)]) for f in fields(Workload)}
    (cell,) = suite.from_options({**axes, "implementation": "bk"}).cells(KNOWN)
    assert cell == Cell("bk", Workload(**axes))


def test_an_integer_for_a_real_number_gives_the_same_cell():
    one, other = (suite.from_options({"model": "a:x", "batch": 1, "max_norm": r}).cells(["bk"]) for r in (1, 1.0))
    assert one[0].key() == other[0].key()


def test_default_leaves_an_axis_to_the_model(written):
    text = '[axes]\nbatch = 1\nlayers = 4\n[[models]]\nmodel = "a:x"\nlayers = ["default", 2]'
    assert [w.layers for w in suite.load(written(text)).groups(KNOWN)] == [None, 2]


def test_shared_sizes_go_where_they_mean_something():
    models = [
        "transformers:gpt2",
        "timm:x",
        "torchvision:x",
        "synthetic:cnn",
        "synthetic:transformer",
        "me.py:build",
    ]
    groups = suite.from_options({"model": models, "batch": 1, "seq_len": 8, "image_size": 32}).groups(KNOWN)
    assert [(w.seq_len, w.image_size) for w in groups] == [
        (8, None), (None, 32), (None, 32), (None, 32), (8, None), (8, 32)
    ]  # fmt: skip


def test_options_override_a_suite_where_they_apply(written):
    quick = suite.load(written(QUICK)).override({"batch": [3], "seq_len": 16, "implementation": "bk", "layers": None})
    groups = quick.groups(KNOWN)
    assert {w.batch for w in groups} == {3}
    assert {(w.model.partition(":")[0], w.seq_len) for w in groups} >= {
        ("transformers", 16),
        ("timm", None),
    }
    assert {c.implementation for cells in groups.values() for c in cells} == {"bk"}
    assert {w.layers for w in groups if "gpt2" in w.model} == {4}
    with pytest.raises(DpbenchError, match="--model cannot be combined with a suite"):
        quick.override({"model": "timm:x"})
    text_only = suite.from_options({"model": "transformers:gpt2", "batch": 1})
    with pytest.raises(DpbenchError, match="--image-size means nothing to any of the models"):
        text_only.override({"image_size": 32})


def test_a_file_of_the_users_own_is_an_implementation():
    cells = suite.from_options({"model": "a:x", "batch": 1, "implementation": ["./mine.py"]}).cells(KNOWN)
    assert [c.implementation for c in cells] == ["./mine.py"]


def test_unknown_implementations_are_named(written):
    with pytest.raises(DpbenchError, match=r"unknown implementation 'bk_mixop'. Did you mean bk_mixopt"):
        suite.from_options({"model": "a:x", "batch": 1, "implementation": "bk_mixop"}).cells(KNOWN)
    text = QUICK.replace('"tf_*"', '"tff_*"')
    with pytest.raises(DpbenchError, match="unknown implementation 'tff_"):
        suite.load(written(text)).cells(KNOWN)


def test_a_suite_is_found_in_the_users_directory_first(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.toml").write_text(QUICK)
    assert suite.find("mine") == suite.available()["mine"]
    assert suite.load("mine").title == "Quick"
    assert suite.find(str(written(QUICK, "other"))).name == "other.toml"


def test_a_suite_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.toml").write_text(QUICK)
    with pytest.raises(
        DpbenchError, match=r"unknown suite 'mime'. Did you mean mine.*Your own goes into ./suites/mime.toml"
    ):
        suite.find("mime")
    with pytest.raises(DpbenchError, match=r"there is no file x/y.toml"):
        suite.find("x/y.toml")
