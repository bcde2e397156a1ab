from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dpbench.errors import Refused
from dpbench.preparation import prepare
from tests.zoo import Net, batch_of, cross_entropy


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), torch.OutOfMemoryError),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), RuntimeError),
        (RuntimeError("no batching rule"), Refused),
    ],
)
def test_what_the_machine_failed_in_is_no_refusal_of_the_generic_rule(monkeypatch, error, seen):
    def fails(function):
        def run(*operands):
            raise error

        return run

    step = prepare("bk", Net(lambda n, x: n.a(x, x), a=nn.Bilinear(4, 4, 3)), cross_entropy)
    monkeypatch.setattr(torch, "func", SimpleNamespace(vmap=fails, vjp=torch.func.vjp))
    with pytest.raises(seen):
        step(batch_of(5, 4))
