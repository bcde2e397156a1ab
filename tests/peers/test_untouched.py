from __future__ import annotations

import pytest
from torch import nn

from dpbench.tensors import marks
from implementations.peers.untouched import Untouched


def put_on(model: nn.Module) -> None:
    model[0].weight.grad_sample = model[0].register_forward_hook(lambda *parts: None)
    model[0].register_full_backward_hook(lambda *parts: None)
    model.engine = object()
    model[1].forward = lambda x: x


def test_attributes_and_hooks_are_taken_off_and_those_that_were_there_stay():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].register_forward_hook(lambda *parts: None)
    model.mine = 1
    before, untouched = marks(model), Untouched(model)
    put_on(model)
    assert marks(model) != before
    untouched.restore()
    assert marks(model) == before
    model[0].register_backward_hook(lambda *parts: None)


def test_as_a_context_it_restores_where_something_raises():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    before = marks(model)
    with pytest.raises(ValueError, match="no"), Untouched(model):
        put_on(model)
        raise ValueError("no")
    assert marks(model) == before
