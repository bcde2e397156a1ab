from __future__ import annotations

import pytest
import torch
from torch import nn

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError
from dpbench.interface import Output, prepare
from dpbench.privatize import privatize


def output(model: nn.Module, value: float = 0.0) -> Output:
    grads = {name: torch.full_like(p, value) for name, p in model.named_parameters()}
    return Output(grads, torch.ones(4), torch.ones(4))


def test_divides_by_the_expected_batch():
    model = nn.Linear(2, 3)
    privatize(model, output(model, 6.0), noise_multiplier=0.0, expected_batch=4)
    assert all((p.grad == 1.5).all() for p in model.parameters())


def test_noise_has_standard_deviation_sigma_r():
    model = nn.Linear(400, 500)
    generator = torch.Generator().manual_seed(0)
    privatize(model, output(model), 2.0, 10, generator, clip=Clip(0.3))
    noise = model.weight.grad * 10
    assert noise.std().item() == pytest.approx(0.6, rel=0.01)
    assert abs(noise.mean().item()) < 0.01


def test_the_generator_decides_the_noise():
    model = nn.Linear(2, 3)
    results = []
    for seed in (0, 0, 1):
        privatize(model, output(model), 1.0, 1, torch.Generator().manual_seed(seed))
        results.append(model.weight.grad.clone())
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_a_non_finite_example_is_named_with_a_parameter():
    model = nn.Linear(6, 3)
    batch = zoo.batch_of(5, 6)
    batch["x"][3, 0] = float("nan")
    out = prepare("bk", model, zoo.cross_entropy, Clip())(batch)
    with pytest.raises(DpbenchError, match=r"not finite: example 3 \(loss nan\) in parameter weight"):
        privatize(model, out, 1.0, 5)


@pytest.mark.parametrize(("sigma", "expected", "message"), [(-1, 1, "expected sigma >= 0"), (1, 0, "expected q N > 0")])
def test_bad_values_are_named(sigma, expected, message):
    model = nn.Linear(2, 3)
    with pytest.raises(DpbenchError, match=message):
        privatize(model, output(model), sigma, expected)
