"""A prepared step is given nothing that its implementation cannot do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.preparation import prepare
from dpbench.registry import available
from tests.promise import batch_of, right, squares
from tests.zoo import L, Net

B = 5
MASKS = {
    "integers": (torch.ones(B, dtype=torch.int64), r"shape \(5,\) and dtype torch.int64; expected one truth value"),
    "a column": (
        torch.ones(B, 1, dtype=torch.bool),
        r"shape \(5, 1\).*one truth value per example, shape \(5,\)",
    ),
    "short": (torch.ones(B - 1, dtype=torch.bool), r"shape \(4,\)"),
    "a list": ([True] * B, "mask is a list; expected a tensor"),
}
UNITS = {
    "negative": (torch.tensor([0, -1, 1, 1, 0]), "numbers from -1"),
    "a column": (torch.zeros(B, 1, dtype=torch.int64), r"shape \(5, 1\).*from 0, shape \(5,\)"),
    "floats": (torch.zeros(B), "dtype torch.float32"),
    "truth values": (torch.zeros(B, dtype=torch.bool), "dtype torch.bool"),
    "a list": ([0] * B, "unit is a list; expected a tensor"),
}


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("case", MASKS)
def test_a_mask_is_one_truth_value_per_example(case, name):
    mask, message = MASKS[case]
    with pytest.raises(DpbenchError, match=message):
        prepare(name, L(4, 3), squares)({"x": torch.randn(B, 4)}, mask=mask)


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("case", UNITS)
def test_a_unit_is_one_number_per_example(case, name):
    unit, message = UNITS[case]
    with pytest.raises(DpbenchError, match=message):
        prepare(name, L(4, 3), squares)({"x": torch.randn(B, 4)}, unit=unit)


@pytest.mark.parametrize("name", available())
def test_gradients_are_taken_where_they_are_switched_off(name):
    net, batch = L(4, 3).double(), batch_of(B, 4)
    with torch.no_grad():
        out = prepare(name, net, squares, Clip(0.7))(batch)
    clip = Clip(1e30) if name == "nonprivate" else Clip(0.7)
    if out.norms is not None:
        assert right(out, net, squares, batch, clip)
    assert out.grads["weight"].any()


def test_inference_mode_is_refused():
    step = prepare("bk", L(4, 3), squares)
    with torch.inference_mode(), pytest.raises(Refused, match=r"inference_mode.*Leave it"):
        step({"x": torch.randn(B, 4)})


@pytest.mark.parametrize("name", available())
def test_a_batch_norm_put_into_training_mode_later_is_refused(name):
    net = nn.Sequential(nn.BatchNorm1d(4, affine=False).eval(), L(4, 3))
    step = prepare(name, net, squares)
    step({"x": torch.randn(B, 4)})
    net.train()
    with pytest.raises(Refused, match=r"0 \(a BatchNorm1d\) is in training mode"):
        step({"x": torch.randn(B, 4)})


@pytest.mark.parametrize("name", available())
def test_the_parameters_are_those_that_were_prepared(name):
    net = nn.Sequential(L(4, 4), L(4, 3))
    step = prepare(name, net, squares)
    step({"x": torch.randn(B, 4)})
    net[0].requires_grad_(False)
    with pytest.raises(DpbenchError, match="0.weight, 0.bias are trained no longer. Prepare the step again"):
        step({"x": torch.randn(B, 4)})
    net[0].requires_grad_(True)
    step({"x": torch.randn(B, 4)})


@pytest.mark.parametrize("name", sorted(available()))
def test_layers_that_write_what_the_examples_say_into_the_model_are_refused(name):
    for layer in (nn.Embedding(4, 3, max_norm=1.0), nn.EmbeddingBag(4, 3, max_norm=1.0)):
        with pytest.raises(Refused, match=r"0 \(a Embedding.*changes the model in its forward"):
            prepare(name, nn.Sequential(layer), squares)
    norm = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
    with pytest.raises(Refused, match="track_running_stats=False"):
        prepare(name, nn.Sequential(norm), squares)
    step = prepare(name, nn.Sequential(norm.eval()), squares)
    norm.train()
    with pytest.raises(Refused, match="0 \\(a InstanceNorm1d\\) changes the model"):
        step(batch_of(5, 3, 4))


@pytest.mark.parametrize("name", ["nonprivate", "tf_privacy", "bk", "opacus"])
def test_a_sparse_gradient_is_refused(name):
    step = prepare(name, nn.Embedding(4, 3, sparse=True), squares)
    with pytest.raises(Refused, match="a gradient is sparse"):
        step({"x": torch.tensor([0, 1, 1, 3, 2])})


@pytest.mark.parametrize("name", ["nonprivate", "tf_privacy", "bk", "opacus"])
def test_a_backward_that_fails_without_privacy_is_refused_with_the_reason(name):
    def overwritten(n, x):
        h = n.a(x).tanh()
        out = n.b(h)
        h.add_(1)
        return out

    step = prepare(name, Net(overwritten, a=L(4, 4), b=L(4, 3)).double(), squares)
    with pytest.raises(Refused, match="overwritten in place"):
        step(batch_of(5, 4))
