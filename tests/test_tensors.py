import pytest
import torch
from torch import nn

from dpbench.tensors import bytes_of, marks


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_bytes_are_those_of_parameters_buffers_and_batch():
    one = nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4))
    floats = 12 + 4 + 4 + 4 + 4
    assert bytes_of(one, {"x": torch.zeros(2, 3), "y": torch.zeros(2, dtype=torch.int64)}) == 4 * floats + 8 + 24 + 16


def test_shared_storage_counts_once():
    one = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    one[1].weight = one[0].weight
    x = torch.zeros(6)
    assert bytes_of(one, (x, x.view(2, 3))) == 64 + 24


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[0].register_forward_hook(lambda *a: None),
        lambda m: m[0].register_forward_pre_hook(lambda *a: None),
        lambda m: m[2].register_full_backward_hook(lambda *a: None),
        lambda m: m[2].weight.register_hook(lambda g: g),
        lambda m: setattr(m[1], "activations", None),
        lambda m: setattr(m[0].weight, "grad_sample", None),
        lambda m: m[0].weight.requires_grad_(False),
        lambda m: setattr(m[0], "forward", lambda x: x),
        lambda m: m.__setitem__(1, nn.GELU()),
    ],
)
def test_whatever_is_left_on_a_model_shows(change):
    one = model()
    before = marks(one)
    assert marks(one) == before
    change(one)
    assert marks(one) != before


def test_a_gradient_is_no_mark():
    one = model()
    before = marks(one)
    one(torch.ones(1, 3)).sum().backward()
    assert marks(one) == before
