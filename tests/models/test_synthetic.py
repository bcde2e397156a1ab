import pytest
import torch
from torch import nn

from dpbench.errors import DpbenchError, Refused
from dpbench.models import build
from dpbench.records import Workload


def test_an_mlp_has_the_width_depth_and_classes_it_is_asked_for():
    model = build(Workload(model="synthetic:mlp(width=8,features=5)", batch=1, layers=3, classes=4)).model
    assert [(m.in_features, m.out_features) for m in model if isinstance(m, nn.Linear)] == [(5, 8), (8, 8), (8, 4)]


def test_a_whole_number_may_be_written_with_an_exponent():
    assert build(Workload(model="synthetic:mlp(width=1e1)", batch=1)).model[0].out_features == 10


@pytest.mark.parametrize("inplace", [True, False])
def test_an_mlp_takes_three_axes_where_tokens_are_given(inplace):
    task = build(Workload(model=f"synthetic:mlp(width=8,inplace={inplace})", batch=1, seq_len=3))
    batch = task.batches(2, 0)
    assert batch["x"].shape == (2, 3, 8)
    assert task.losses(task.model, batch).shape == (2,)
    assert all(m.inplace is inplace for m in task.model if isinstance(m, nn.ReLU))


def test_a_cnn_has_its_image_size_and_classes():
    task = build(Workload(model="synthetic:cnn(channels=8)", batch=1, image_size=6, classes=3))
    batch = task.batches(2, 0)
    assert task.model(batch["x"]).shape == (2, 3)


def test_a_transformer_is_causal_and_untied():
    task = build(Workload(model="synthetic:transformer(width=8,heads=2,vocab=20)", batch=1, seq_len=5))
    ids = task.batches(1, 0)["input_ids"]
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 1) % 20
    assert torch.allclose(task.model(ids)[:, :-1], task.model(changed)[:, :-1])
    assert task.tokens == 5
    assert task.model.head.weight is not task.model.tokens.weight


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("synthetic:mpl", r"unknown synthetic model 'mpl'. Did you mean mlp"),
        ("synthetic:mlp(width=abc)", "synthetic:mlp is given width=abc; expected a whole number, 1 or more"),
        ("synthetic:cnn(depth=0)", "synthetic:cnn is given depth=0; expected a whole number, 1 or more"),
        ("synthetic:mlp(inplace=1)", "synthetic:mlp is given inplace=1; expected true or false"),
        ("synthetic:transformer(heads=3)", "is given width=64 and heads=3; expected heads to divide the width"),
        ("synthetic:mlp(widht=3)", r"unknown option of synthetic:mlp 'widht'. Did you mean width"),
    ],
)
def test_a_mistake_is_said(model, message):
    with pytest.raises(DpbenchError, match=message):
        build(Workload(model=model, batch=1))


@pytest.mark.parametrize(
    ("kind", "axis"),
    [("mlp", "image_size"), ("cnn", "seq_len"), ("transformer", "classes"), ("transformer", "image_size")],
)
def test_an_axis_that_changes_nothing_is_refused(kind, axis):
    with pytest.raises(Refused, match=f"synthetic:{kind} has no axis {axis}"):
        build(Workload(model=f"synthetic:{kind}", batch=1, **{axis: 8}))
