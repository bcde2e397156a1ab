import sys

import pytest
import torch
from torch import nn

from dpbench.errors import DpbenchError, MissingExtra, Refused
from dpbench.models import build
from dpbench.records import Workload
from tests.models.tiny import TINY, VIT, image

pytest.importorskip("timm")
pytest.importorskip("torchvision")

IMAGES = ["vit", "cait", "beit", "convnext", "swin", "resnet18", "vgg11"]


@pytest.mark.parametrize("name", IMAGES)
def test_size_and_classes_are_axes(name):
    task = build(TINY[name])
    batch = task.batches(2, 0)
    assert batch["x"].shape == (2, 3, 32, 32)
    assert task.model(batch["x"]).shape == (2, 10)


@pytest.mark.parametrize("name", IMAGES)
def test_the_same_batch_gives_the_same_losses_twice(name):
    task = build(TINY[name])
    batch = task.batches(2, 0)
    with torch.no_grad():
        assert torch.equal(task.losses(task.model, batch), task.losses(task.model, batch))


def test_layers_is_the_depth():
    from dataclasses import replace

    workload = replace(image(f"timm:vit_tiny_patch16_224({VIT})"), layers=3)
    assert len(build(workload).model.blocks) == 3


@pytest.mark.parametrize(("attention", "fused"), [("eager", False), ("sdpa", True)])
def test_attention_chooses_the_kernel(attention, fused):
    model = build(image(f"timm:vit_tiny_patch16_224({VIT},depth=1)", attention=attention)).model
    assert model.blocks[0].attn.fused_attn is fused


@pytest.mark.parametrize("model", ["timm:resnet18", "torchvision:resnet18"])
def test_batch_norm_is_replaced_when_asked_and_refused_otherwise(model):
    task = build(image(model, norm="group"))
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in task.model.modules())
    batch = task.batches(2, 0)
    assert task.losses(task.model, batch).shape == (2,)
    with pytest.raises(Refused, match=r"bn1 \(a BatchNorm2d\) is in training mode: it mixes.*--norm group"):
        build(image(model))


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_there_are_no_auxiliary_outputs(name):
    task = build(image(f"torchvision:{name}", 75, norm="group"))
    batch = task.batches(1, 0)
    assert task.losses(task.model, batch).shape == (1,)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("timm:vit_tiny_patch16_225", r"unknown timm model.*Did you mean .*vit_tiny_patch16_224"),
        ("torchvision:resnet81", r"unknown torchvision model 'resnet81'. Did you mean resnet18"),
        ("timm:vit_tiny_patch16_224(dept=2)", r"unknown option of timm:vit_\w+ 'dept'. Did you mean depth"),
        ("torchvision:resnet18(layer=2)", r"unknown option of torchvision:resnet18 'layer'. Did you mean layers"),
        ("timm:vit_tiny_patch16_224(embed_dim=10,num_heads=3)", "cannot be built with embed_dim=10, num_heads=3: "),
        ("timm:eva02_tiny_patch14_224(depth=1)", "has no classifier of its own; give it one with --classes"),
    ],
)
def test_a_mistake_is_said(model, message):
    with pytest.raises(DpbenchError, match=message):
        build(Workload(model=model, batch=1))


def test_the_size_of_the_images_may_be_an_option():
    task = build(Workload(model=f"timm:vit_tiny_patch16_224({VIT},depth=1)", batch=1))
    assert task.batches(1, 0)["x"].shape == (1, 3, 32, 32)


def test_images_may_have_other_channels():
    task = build(image("timm:convnext_atto(in_chans=1,depths=[1,1,1,1],dims=[8,8,8,8])"))
    batch = task.batches(2, 0)
    assert batch["x"].shape == (2, 1, 32, 32)
    assert task.model(batch["x"]).shape == (2, 10)


def test_an_unusual_size_is_taken_where_the_model_can_and_said_where_not():
    task = build(image("timm:resnet18", 28, norm="group"))
    assert task.model.training
    assert task.batches(1, 0)["x"].shape == (1, 3, 28, 28)
    with pytest.raises(DpbenchError, match="torchvision:alexnet cannot take images of 20 x 20 pixels"):
        build(image("torchvision:alexnet", 20))


def test_dropout_stays_where_it_is_asked_for():
    task = build(image("torchvision:vgg11(dropout=0.3)"))
    assert {m.p for m in task.model.modules() if isinstance(m, nn.Dropout)} == {0.3}
    assert task.source.endswith("dropout=0.3")


@pytest.mark.parametrize(
    ("model", "axes"),
    [
        ("timm:resnet18", {"attention": "sdpa"}),
        ("timm:swin_tiny_patch4_window7_224", {"layers": 2}),
        ("timm:convnext_atto", {"seq_len": 2}),
        ("torchvision:vgg11", {"attention": "sdpa"}),
    ],
)
def test_an_axis_that_the_model_lacks_is_refused(model, axes):
    with pytest.raises(Refused, match=f"{model} has no axis {next(iter(axes))}"):
        build(Workload(model=model, batch=1, **axes))


def test_layers_are_refused_where_there_is_no_such_axis():
    with pytest.raises(Refused, match="torchvision:vgg11 has no axis layers"):
        build(Workload(model="torchvision:vgg11", batch=1, layers=3))


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_without_the_package_the_install_line_is_given(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package} is not installed.*pip install 'dpsgd-bench\[models\]'"):
        build(Workload(model=f"{package}:resnet18", batch=1))
