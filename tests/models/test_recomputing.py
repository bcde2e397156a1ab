"""Blocks whose activations are computed again in the backward."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from torch import nn

from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.errors import Refused
from dpbench.models import build
from dpbench.parity import Oracle
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.reference import per_example
from tests import zoo
from tests.models.tiny import GPT2, TINY, VIT, image, text

ATTACHED = ["opacus", "fastgradclip", "ghostclip", "mixghostclip"]
DETACHED = ["opacus_improved", "fastgradclip_improved", "bk", "bk_mixghostclip", "bk_mixopt"]
NAMES = ["gpt2", "gpt2 untied", "gpt2 lora", "gpt2 biases", "llama", "t5", "roberta", "vit", "cait", "swin", "convnext"]
"""Layer norms and RMS norms, a tied head, adapters, two stacks, bare parameters in the blocks."""


def checkpointed(name):
    return replace(TINY[name], checkpointing=True)


@lru_cache(maxsize=1)
def oracle(name):
    """What the explicit loop gives without checkpointing, and the same in float64 with it."""
    plain, again = build(TINY[name]), build(checkpointed(name))
    model, losses, batch = double(plain.model, plain.losses, plain.batches(5, 0))
    clip = Clip(float(per_example(model, losses, batch, Clip()).norms.median()))
    return double(again.model, again.losses, batch), clip, per_example(model, losses, batch, clip)


@pytest.mark.parametrize("implementation", ["tf_privacy", *ATTACHED])
@pytest.mark.parametrize("name", NAMES)
def test_attached_weights_give_the_gradient_of_the_loop_without_checkpointing(name, implementation):
    (model, losses, batch), clip, expected = oracle(name)
    assert zoo.error(zoo.run(prepare(implementation, model, losses, clip), batch), expected) < 1e-10


@pytest.mark.parametrize("implementation", [*DETACHED, "vmap"])
@pytest.mark.parametrize("name", ["gpt2", "vit", "gpt2 lora"])
def test_others_are_refused_by_name(name, implementation):
    (model, losses, batch), clip, _ = oracle(name)
    with pytest.raises(Refused, match="gradient checkpointing.*Switch checkpointing .*off, or use .*opacus"):
        prepare(implementation, model, losses, clip)(batch)


@pytest.mark.parametrize("implementation", ["nonprivate", "ghostclip", "opacus"])
@pytest.mark.parametrize("model", [f"gpt2({GPT2},dropout=0.3)", f"gpt2({GPT2})"])
def test_the_check_of_the_gradient_goes_through_a_checkpoint(model, implementation):
    task = build(text(model, checkpointing=True))
    assert Oracle(task.model, task.losses, task.batches(3, 0), Clip()).check(implementation).parity.passed


@pytest.mark.parametrize(("name", "inside"), [("gpt2", "mlp"), ("gpt2 lora", "mlp"), ("llama", "mlp"), ("vit", "mlp")])
def test_every_block_is_computed_twice_and_the_gradient_stays(name, inside):
    grads, calls = [], []
    for workload in (TINY[name], checkpointed(name)):
        task, count = build(workload), []
        blocks = [m for path, m in task.model.named_modules() if path.endswith(f".{inside}")]
        for block in blocks:
            block.act = block.act if hasattr(block, "act") else block.act_fn
            block.act.register_forward_hook(lambda *_, count=count: count.append(1))
        task.losses(task.model, task.batches(3, 0)).sum().backward()
        grads.append([p.grad for p in task.model.parameters() if p.grad is not None])
        calls.append(len(count))
    assert len(blocks) == 2
    assert calls == [2, 4]
    assert all(torch.allclose(a, b) for a, b in zip(*grads, strict=True))


def test_a_frozen_embedding_stays_without_a_gradient():
    task = build(checkpointed("gpt2 lora"))
    embedded = []
    wte = task.model.get_base_model().transformer.wte
    wte.register_forward_hook(lambda m, args, out: embedded.append(out.requires_grad))
    task.losses(task.model, task.batches(2, 0))
    assert embedded == [False]


@pytest.mark.parametrize(
    "model",
    ["torchvision:resnet18", "synthetic:mlp", "synthetic:transformer"],
)
def test_a_family_without_it_is_refused(model):
    workload = Workload(model=model, batch=2, norm="group" if "resnet" in model else None, checkpointing=True)
    with pytest.raises(Refused, match=f"{model} has no axis checkpointing, which .* Transformers and timm have; leave"):
        build(workload)


def test_a_file_of_ones_own_is_told_how(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\n"
        "def build(workload):\n"
        "    losses = lambda model, batch: model(batch['x']).sum(1)\n"
        "    return torch.nn.Linear(2, 2), losses, {'x': torch.ones(3, 2)}\n"
    )
    with pytest.raises(Refused, match=r"a model of a file has no axis checkpointing.*use_reentrant=False"):
        build(Workload(model=f"{path}:build", batch=2, checkpointing=True))


def test_a_model_that_lacks_it_is_refused():
    pytest.importorskip("timm")
    with pytest.raises(Refused, match="timm:convit_tiny has no axis checkpointing: .*not supported. Leave it out"):
        build(image("timm:convit_tiny", 224, checkpointing=True))


def test_what_changes_nothing_is_refused(monkeypatch):
    from timm.models.vision_transformer import VisionTransformer

    monkeypatch.setattr(VisionTransformer, "set_grad_checkpointing", lambda self, enable: None)
    with pytest.raises(Refused, match="set_grad_checkpointing changes nothing"):
        build(image(f"timm:vit_tiny_patch16_224({VIT},depth=1)", checkpointing=True))


def test_a_model_of_transformers_that_says_it_lacks_it_is_refused(monkeypatch):
    from transformers import GPT2LMHeadModel

    monkeypatch.setattr(GPT2LMHeadModel, "supports_gradient_checkpointing", False)
    with pytest.raises(Refused, match="transformers:gpt2 has no axis checkpointing: GPT2LMHeadModel says"):
        build(checkpointed("gpt2"))


def test_reentrant_checkpoints_of_timm_are_refused():
    from timm.layers import set_reentrant_ckpt

    set_reentrant_ckpt(True)
    try:
        with pytest.raises(Refused, match="timm is set to reentrant checkpoints.*Unset it"):
            build(image(f"timm:vit_tiny_patch16_224({VIT},depth=1)", checkpointing=True))
    finally:
        set_reentrant_ckpt(False)


def test_a_model_stays_in_training_mode():
    for name in ("gpt2", "vit"):
        model = build(checkpointed(name)).model
        assert isinstance(model, nn.Module)
        assert model.training
