"""A workload on real tensors: what Faked is, with values, and refused where it would not fit."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

from dpbench.complexity import real
from dpbench.complexity.faked import Faked
from dpbench.complexity.predict import predict
from dpbench.complexity.real import COPIES, Real
from dpbench.errors import Refused
from dpbench.records import Workload
from tests.models.tiny import TINY

MLP = Workload(model="synthetic:mlp(width=16,depth=2)", batch=3)
PARAMETERS = 2 * (16 * 16 + 16)
NEEDED = 4 * COPIES * PARAMETERS


def with_free(monkeypatch, size):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=size))


@pytest.mark.parametrize("name", ["gpt2", "gpt2 lora", "resnet18", "mlp, in-place, three axes"])
def test_it_has_the_tensors_of_the_one_without_memory(name):
    if "lora" in name:
        pytest.importorskip("peft")
    fake = Faked(TINY[name])
    found = Real(TINY[name], fake.parameters)
    assert [(t.shape, t.dtype, t.requires_grad) for t in found.tensors] == [
        (t.shape, t.dtype, t.requires_grad) for t in fake.tensors
    ]


def test_it_has_values_that_can_be_read():
    found = Real(MLP, PARAMETERS)
    with found.context("reading"):
        assert found.losses(found.model, found.batch).sum().item() > 0
    assert not any(isinstance(t, FakeTensor) for t in found.tensors)


def test_the_context_hides_no_mistake():
    with pytest.raises(ZeroDivisionError), Real(MLP, PARAMETERS).context("dividing"):
        raise ZeroDivisionError


def test_it_is_the_same_at_every_time():
    one, other = Real(MLP, PARAMETERS), Real(MLP, PARAMETERS)
    assert all(torch.equal(a, b) for a, b in zip(one.tensors, other.tensors, strict=True))


def test_a_model_too_large_for_the_free_memory_is_refused_before_it_is_built(monkeypatch):
    with_free(monkeypatch, NEEDED - 1)
    monkeypatch.setattr(real, "Built", lambda *_: pytest.fail("it is built"))
    with pytest.raises(Refused, match=rf"needs about .* GB for {PARAMETERS} parameters, .* GB are free.*\(--layers\)"):
        Real(MLP, PARAMETERS)


def test_one_that_just_fits_is_traced(monkeypatch):
    with_free(monkeypatch, NEEDED)
    assert len(Real(MLP, PARAMETERS).tensors) == 4 + 2


def test_the_message_says_how_much_is_missing(monkeypatch):
    with_free(monkeypatch, 8e9)
    with pytest.raises(Refused, match=r"needs about 32\.0 GB for 1000000000 parameters, 8\.0 GB are free"):
        Real(MLP, 10**9)


def test_a_prediction_that_does_not_fit_has_its_formulas_and_a_reason(monkeypatch):
    with_free(monkeypatch, 1000)
    plain, bk = predict(MLP, ["nonprivate", "bk"], on="real")
    for found in (plain, bk):
        assert found.trace is None
        assert "a trace of real tensors needs about" in found.reason
        assert found.analytic.total() > 0
    traced = next(predict(MLP, ["bk"]))
    assert (traced.on, traced.reason) == ("trace", ""), "a trace without memory needs none"
