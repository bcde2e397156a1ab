"""Parameters of which no gradient can be given are refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench.errors import DpbenchError, Refused
from dpbench.parameters import trainable
from tests.zoo import L


def test_a_model_without_trainable_parameters_is_named():
    with pytest.raises(DpbenchError, match="no trainable parameter"):
        trainable(L(6, 3).requires_grad_(False))


def test_a_complex_parameter_is_refused():
    with pytest.raises(Refused, match="parameter weight is complex"):
        trainable(nn.Linear(2, 2, dtype=torch.complex64))


def test_a_hook_on_a_parameter_is_refused():
    net = L(6, 3)
    net.bias.register_hook(lambda g: g)
    with pytest.raises(Refused, match="parameter bias has a hook"):
        trainable(net)


def test_a_parameter_that_was_not_made_yet_is_refused():
    with pytest.raises(Refused, match="parameter weight has no shape yet"):
        trainable(nn.LazyLinear(3))


def test_tied_parameters_are_there_once():
    net = nn.Sequential(L(3, 3), L(3, 3))
    net[1].weight = net[0].weight
    assert list(trainable(net)) == ["0.weight", "0.bias", "1.bias"]
