import pytest
import torch
from torch import nn

from dpbench import precision
from dpbench.errors import DpbenchError
from tests.zoo import batch_of, cross_entropy

CPU = torch.device("cpu")
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="is about a machine without CUDA")


def applied(name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8).eval(), nn.Linear(8, 3))
    return precision.apply(name, model, cross_entropy, batch_of(5, 4))


def test_bf16_casts_parameters_buffers_and_floating_batch_alone():
    model, losses, batch = applied("bf16")
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert model[1].running_mean.dtype == torch.bfloat16
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.bfloat16, torch.int64)
    assert losses(model, batch).dtype == torch.float32


def test_amp_keeps_the_parameters_and_computes_in_bfloat16():
    model, losses, batch = applied("amp-bf16")
    seen = []
    model[2].register_forward_hook(lambda m, a, out: seen.append(out.dtype))
    loss = losses(model, batch)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert seen == [torch.bfloat16]
    assert loss.dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_fp32_changes_nothing():
    model, losses, _ = applied("fp32")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert losses is cross_entropy
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("name", ["fp32", "bf16", "amp-bf16"])
def test_a_cpu_has_these(name):
    precision.check_precision(name, CPU)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tf32", "precision tf32 needs a CUDA device, got cpu; use fp32"),
        ("bf61", "unknown precision 'bf61'. Did you mean bf16"),
    ],
)
def test_a_precision_that_is_not_there_is_refused(name, message):
    with pytest.raises(DpbenchError, match=message):
        precision.check_precision(name, CPU)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "unknown device 'gpu'"),
        ("meta", "cannot be measured; expected cpu or cuda"),
        ("cpu:1", "the CPU is one device"),
        pytest.param("cuda", "is not there; this machine has cpu. Choose", marks=no_cuda),
        ("cuda:99", "cuda:99 is not there; this machine has cpu"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name, message):
    with pytest.raises(DpbenchError, match=message):
        precision.check_device(name)


def test_the_cpu_is_there():
    assert precision.check_device("cpu") == CPU
    assert precision.devices()[0] == "cpu"


def test_cuda_alone_is_its_first_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert precision.check_device("cuda") == torch.device("cuda", 0)
    assert precision.check_device("cuda:1") == torch.device("cuda", 1)
