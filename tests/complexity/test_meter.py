"""Traces: bytes worked by hand, and the same on fake tensors as on real ones."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
import torch

from dpbench.built import Built, clip_of
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.meter import traced
from dpbench.complexity.modules import of_network
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.registry import ablations, available, load

MLP = Workload(model="synthetic:mlp(width=32,depth=3)", batch=4)
CNN = Workload(model="synthetic:cnn", batch=4, image_size=16)
TRANSFORMER = Workload(model="synthetic:transformer", batch=4, seq_len=16)
ALL = [*available(), *ablations()]
WORKLOADS = {"mlp": MLP, "cnn": CNN, "transformer": TRANSFORMER}


def of_fake(name, workload):
    faked = Faked(workload)
    with faked.mode:
        step = prepare(name, faked.model, faked.losses, clip_of(workload))
        step(faked.batch)
        faked.model.zero_grad(set_to_none=True)
        return traced(lambda: step(faked.batch), faked.tensors, faked.model), layers(faked)


def test_bytes_are_those_that_are_alive_whoever_holds_them():
    x = torch.zeros(100)

    def step():
        a = x + 1  # 400 bytes
        b = a * 2  # 800
        del a
        c = b[:50] + 1  # 600, as a view is no storage
        return c

    trace = traced(step, [x])
    assert trace.peak == 800
    assert trace.peak_in == "1"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", WORKLOADS)
def test_fake_and_real_tensors_give_the_same_trace(kind, name):
    workload = WORKLOADS[kind]
    fake, _ = of_fake(name, workload)
    built = Built(workload, workload.batch)
    step = prepare(name, built.model, built.losses, clip_of(workload))
    step(built.batch)
    built.model.zero_grad(set_to_none=True)
    gc.collect()
    resident = [*built.model.parameters(), *built.model.buffers(), *built.batch.values()]
    real = traced(lambda: step(built.batch), resident, built.model)
    assert Counter(real.operations) == Counter(fake.operations)
    assert real.peak == fake.peak


@pytest.mark.parametrize("name", ALL)
def test_on_linear_layers_modules_are_the_trace_to_the_last_flop(name):
    trace, uses = of_fake(name, MLP)
    assert of_network(uses, load(name).MODULES).total() == trace.total


@pytest.mark.parametrize("name", ALL)
def test_on_convolutions_too(name):
    trace, uses = of_fake(name, CNN)
    assert of_network(uses, load(name).MODULES).total() == trace.total


@pytest.mark.parametrize("name", ALL)
def test_on_a_transformer_the_rest_is_attention(name):
    trace, uses = of_fake(name, TRANSFORMER)
    modules = load(name).MODULES
    rest = trace.total - of_network(uses, modules).total()
    blocks, width = 2, 64
    products = blocks * 2 * (2 * 4 * 16 * 16 * width)
    backwards = 2 if modules.count("2a") == 2 else 1
    assert rest == products * (1 + 2 * backwards)
