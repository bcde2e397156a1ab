"""Workloads without memory are the workloads."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

from dpbench.built import Built
from dpbench.complexity.faked import Faked
from dpbench.models import build
from tests.models.tiny import TINY


@pytest.mark.parametrize("name", ["gpt2", "roberta", "vit", "resnet18", "t5", "swin"])
def test_it_has_the_parameters_and_the_batch_of_the_real_one(name):
    faked, built = Faked(TINY[name]), Built(TINY[name], TINY[name].batch)
    assert all(isinstance(p, FakeTensor) for p in faked.model.parameters())
    shapes = {n: (p.shape, p.dtype, p.requires_grad) for n, p in faked.model.named_parameters()}
    assert shapes == {n: (p.shape, p.dtype, p.requires_grad) for n, p in built.model.named_parameters()}
    assert {k: (v.shape, v.dtype) for k, v in faked.batch.items()} == {
        k: (v.shape, v.dtype) for k, v in built.batch.items()
    }


def test_tied_parameters_stay_tied():
    names = [n for n, _ in build(TINY["gpt2"]).model.named_parameters()]
    faked = Faked(TINY["gpt2"])
    assert [n for n, _ in faked.model.named_parameters()] == names
    assert faked.model.lm_head.weight is faked.model.transformer.wte.weight


def test_nothing_random_is_touched():
    before = torch.get_rng_state()
    Faked(TINY["gpt2"])
    assert torch.equal(before, torch.get_rng_state())
