"""Logits and losses of some tokens at a time: the same losses and gradients, and no tensor of all logits."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.errors import DpbenchError, Refused
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.reference import per_example
from tests import zoo
from tests.models.tiny import GPT2, LLAMA, TINY, text

ATTACHED = ["opacus", "fastgradclip", "ghostclip", "mixghostclip"]
NAMES = ["gpt2", "gpt2 untied", "gpt2 lora", "llama", "qwen2", "gemma", "opt", "pythia", "transformer"]
"""Heads that are tied, and that are not; a decoder inside of the base model; adapters; one of plain layers."""

CAPPED = {
    "gemma2": {"final_logit_softcapping": 30.0},
    "granite": {"logits_scaling": 8.0},
    "cohere": {"logit_scale": 0.0625},
}
SMALL = {
    "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 32,
    "num_hidden_layers": 1, "vocab_size": 60,
}  # fmt: skip


@lru_cache(maxsize=1)
def oracle(name):
    """What the explicit loop gives with all logits at once."""
    plain = build(TINY[name])
    model, losses, batch = double(plain.model, plain.losses, plain.batches(5, 0))
    clip = Clip(float(per_example(model, losses, batch, Clip()).norms.median()))
    return batch, losses(model, batch).detach(), clip, per_example(model, losses, batch, clip)


@lru_cache(maxsize=1)
def chunked(name, size, **axes):
    task = build(replace(TINY[name], loss_chunk=size, **axes))
    return double(task.model, task.losses, task.batches(5, 0))


@pytest.mark.parametrize("size", [1, 3, 8, 100])
@pytest.mark.parametrize("name", NAMES)
def test_the_losses_are_those_of_all_logits_at_once(name, size):
    model, losses, batch = chunked(name, size)
    assert torch.allclose(losses(model, batch), oracle(name)[1], rtol=1e-13)


@pytest.mark.parametrize("implementation", ["tf_privacy", *ATTACHED])
@pytest.mark.parametrize("name", NAMES)
def test_attached_weights_give_the_gradient_of_the_loop_over_all_logits(name, implementation):
    """The head is used three times, and a tied one as an embedding, too: its norm is joint."""
    model, losses, batch = chunked(name, 3)
    _, _, clip, expected = oracle(name)
    assert zoo.error(zoo.run(prepare(implementation, model, losses, clip), batch), expected) < 1e-10


@pytest.mark.parametrize("implementation", ATTACHED)
@pytest.mark.parametrize("name", ["gpt2", "llama", "gpt2 lora"])
def test_together_with_checkpointing_too(name, implementation):
    model, losses, batch = chunked(name, 2, checkpointing=True)
    _, _, clip, expected = oracle(name)
    assert zoo.error(zoo.run(prepare(implementation, model, losses, clip), batch), expected) < 1e-10


@pytest.mark.parametrize("implementation", ["bk", "bk_mixopt", "opacus_improved", "vmap"])
@pytest.mark.parametrize("name", ["gpt2", "gpt2 untied", "transformer"])
def test_others_are_refused_by_name(name, implementation):
    model, losses, batch = chunked(name, 3)
    with pytest.raises(Refused, match="gradient checkpointing.*loss_chunk.* off, or use .*opacus"):
        prepare(implementation, model, losses, Clip())(batch)


@pytest.mark.parametrize("name", ["gpt2 lora", "gpt2 biases"])
def test_a_frozen_head_is_nobodys_concern(name):
    model, losses, batch = chunked(name, 3)
    _, _, clip, expected = oracle(name)
    assert zoo.error(zoo.run(prepare("bk", model, losses, clip), batch), expected) < 1e-10


class Largest(TorchDispatchMode):
    """The most logits that one tensor has: entries with V on the last axis."""

    def __init__(self, V):
        super().__init__()
        self.V, self.rows = V, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in pytree.tree_leaves(out):
            if isinstance(t, torch.Tensor) and t.ndim > 1 and t.shape[-1] == self.V:
                self.rows = max(self.rows, t.numel() // self.V)
        return out


@pytest.mark.parametrize(("size", "rows"), [(None, 20 * 8), (3, 20 * 3), (1, 20)])
def test_no_more_logits_than_of_one_piece_are_in_one_tensor(size, rows):
    # The weight, transposed, has 16 rows.
    task = build(text(f"llama-3.2-1b({LLAMA.replace('vocab_size=60', 'vocab_size=61')})", loss_chunk=size))
    with Largest(61) as largest:
        task.losses(task.model, task.batches(20, 0)).sum().backward()
    assert largest.rows == rows


@pytest.mark.parametrize("kind", CAPPED)
def test_logits_that_are_changed_after_the_head_are_refused(tmp_path, kind):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": kind, **SMALL, **CAPPED[kind]}))
    (name, value), *_ = CAPPED[kind].items()
    message = f"cannot take loss_chunk: its logits are scaled, capped .*{name}={value}.*expected .*Leave loss_chunk out"
    with pytest.raises(Refused, match=message):
        build(Workload(model=str(path), batch=2, seq_len=4, loss_chunk=2))


def test_the_same_model_without_its_cap_is_taken(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma2", **SMALL, "final_logit_softcapping": None}))
    workload = Workload(model=str(path), batch=2, seq_len=4)
    plain, pieces = build(workload), build(replace(workload, loss_chunk=3))
    batch = plain.batches(2, 0)
    assert torch.allclose(plain.losses(plain.model, batch), pieces.losses(pieces.model, batch))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("self.lm_head(x) + self.lm_head(x)", "its head is called 2 times"),
        ("self.lm_head(x * 2)", "no part of it takes the batch as it is and gives what its head reads"),
        ("self.lm_head(x.mul_(2))", "no part of it takes the batch as it is and gives what its head reads"),
        ("self.lm_head(x).mul_(2)", "its logits are scaled, capped or changed in another way"),
        ("self.lm_head(x) + 1", "its logits are scaled, capped or changed in another way"),
    ],
)
def test_any_other_way_from_the_blocks_to_the_logits_is_refused(monkeypatch, change, message):
    from transformers import GPT2LMHeadModel
    from transformers.modeling_outputs import CausalLMOutput

    def forward(self, **inputs):
        x = self.transformer(**inputs)[0]
        return CausalLMOutput(logits=eval(change, {"self": self, "x": x}))

    monkeypatch.setattr(GPT2LMHeadModel, "forward", forward)
    with pytest.raises(Refused, match=f"transformers:gpt2 cannot take loss_chunk: {message}"):
        build(text(f"gpt2({GPT2})", loss_chunk=2))


def test_inputs_that_are_changed_on_the_way_are_refused(monkeypatch):
    from transformers import GPT2LMHeadModel
    from transformers.modeling_outputs import CausalLMOutput

    def forward(self, input_ids, attention_mask):
        x = self.transformer(input_ids=input_ids + 1, attention_mask=attention_mask)[0]
        return CausalLMOutput(logits=self.lm_head(x))

    monkeypatch.setattr(GPT2LMHeadModel, "forward", forward)
    with pytest.raises(Refused, match="no part of it takes the batch as it is"):
        build(text(f"gpt2({GPT2})", loss_chunk=2))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "roberta",
            "transformers:roberta-base has no axis loss_chunk: got a model for classification, expected one that",
        ),
        ("t5", "transformers:t5-small has no axis loss_chunk: got a model for translation.*Leave loss_chunk out"),
        ("vit", "timm:vit_tiny_patch16_224 has no axis loss_chunk; leave it out"),
        ("resnet18", "torchvision:resnet18 has no axis loss_chunk; leave it out"),
        ("cnn", "synthetic:cnn has no axis loss_chunk; leave it out"),
        ("mlp, in-place, three axes", "synthetic:mlp has no axis loss_chunk; leave it out"),
        ("vgg11", r"file:.*vgg11.py:build has no axis loss_chunk; leave it out"),
    ],
)
def test_what_predicts_no_token_is_refused(name, message):
    with pytest.raises(Refused, match=message):
        build(replace(TINY[name], loss_chunk=2))


def test_no_tokens_at_a_time_are_a_mistake():
    model, losses, batch = chunked("transformer", 0)
    with pytest.raises(DpbenchError, match="computed for 0 tokens at a time; expected 1 or more"):
        losses(model, batch)
