from __future__ import annotations

import pytest
import torch
from torch import nn

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError
from dpbench.interface import Output
from dpbench.noise import privatize
from dpbench.preparation import prepare

CLIP = Clip()


def output(model: nn.Module, value: float = 0.0, clip: Clip = CLIP) -> Output:
    grads = {name: torch.full_like(p, value) for name, p in model.named_parameters()}
    return Output(grads, torch.ones(4), torch.ones(4), clip)


def test_divides_by_the_expected_batch():
    model = nn.Linear(2, 3)
    privatize(model, output(model, 6.0), noise_multiplier=0.0, expected_batch=4)
    assert all((p.grad == 1.5).all() for p in model.parameters())


def test_noise_has_standard_deviation_sigma_r():
    model = nn.Linear(400, 500)
    generator = torch.Generator().manual_seed(0)
    privatize(model, output(model, clip=Clip(0.3)), 2.0, 10, generator)
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


def test_a_non_finite_unit_is_named():
    model = nn.Linear(6, 3)
    batch = zoo.batch_of(5, 6)
    batch["x"][3, 0] = float("nan")
    out = prepare("bk", model, zoo.cross_entropy, Clip())(batch, unit=torch.tensor([0, 0, 1, 2, 2]))
    with pytest.raises(DpbenchError, match=r"not finite: unit 2 in parameter weight"):
        privatize(model, out, 1.0, 5)


def test_a_prepared_step_says_how_it_clipped():
    model, batch = nn.Linear(6, 3), zoo.batch_of(5, 6)
    clip = Clip(0.3, style="per-layer")
    assert prepare("bk", model, zoo.cross_entropy, clip)(batch).clip == clip
    assert prepare("nonprivate", model, zoo.cross_entropy, clip)(batch).clip is None


def test_no_noise_is_added_to_what_was_not_clipped():
    model = nn.Linear(6, 3)
    out = prepare("nonprivate", model, zoo.cross_entropy)(zoo.batch_of(5, 6))
    with pytest.raises(DpbenchError, match=r"the gradient was not clipped.*noise_multiplier=0"):
        privatize(model, out, 1.0, 5)
    privatize(model, out, 0.0, 5)
    assert torch.equal(model.weight.grad, out.grads["weight"] / 5)


def test_physical_batches_of_one_step_add_up():
    model, batch = nn.Linear(6, 3).double(), zoo.batch_of(5, 6)
    batch["x"] = batch["x"].double()
    step = prepare("bk", model, zoo.cross_entropy, Clip(0.3))
    whole = step(batch)
    parts = [step({k: v[rows] for k, v in batch.items()}) for rows in (slice(0, 2), slice(2, 5))]
    both = parts[0] + parts[1]
    assert zoo.error(both, whole) < 1e-12
    assert both.clip == whole.clip
    assert torch.equal(both.losses, whole.losses)


def test_outputs_of_different_steps_are_not_added():
    model = nn.Linear(6, 3)
    with pytest.raises(DpbenchError, match=r"outputs of different steps cannot be added.*0\.5 .*0\.3 "):
        output(model, clip=Clip(0.5)) + output(model, clip=Clip(0.3))


@pytest.mark.parametrize(("sigma", "expected", "message"), [(-1, 1, "expected sigma >= 0"), (1, 0, "expected q N > 0")])
def test_bad_values_are_named(sigma, expected, message):
    model = nn.Linear(2, 3)
    with pytest.raises(DpbenchError, match=message):
        privatize(model, output(model), sigma, expected)
