import pytest
import torch
from torch import nn

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.step import LEARNING_RATE, NOISE_MULTIPLIER, SAYS, Training, sizes, summed
from dpbench.suitefile import CHOICES
from tests.zoo import batch_of, cross_entropy


def trained(optimizer="sgd", private=True, max_norm=1.0, seed=0):
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    clip, batch = Clip(max_norm=max_norm), batch_of(5, 4)
    batch["x"] = batch["x"].double()
    step = prepare("bk" if private else "nonprivate", model, cross_entropy, clip)
    out = Training(model, step, optimizer, seed)(batch)
    return out, {n: (before[n] - p.detach()) / LEARNING_RATE for n, p in model.named_parameters()}


def test_non_private_training_is_gradient_descent_on_the_mean():
    out, moved = trained(private=False)
    for name, g in out.grads.items():
        torch.testing.assert_close(moved[name], g / 5, rtol=1e-6, atol=1e-8)


def test_private_training_adds_noise_of_the_size_that_the_clipping_norm_says():
    out, moved = trained(max_norm=100.0)
    noise = torch.cat([(moved[n] * 5 - g).flatten() for n, g in out.grads.items()])
    assert 0.4 < noise.std() / (NOISE_MULTIPLIER * 100.0) < 1.8


def test_the_noise_is_that_of_the_seed():
    (_, a), (_, b), (_, c) = trained(seed=1), trained(seed=1), trained(seed=2)
    assert torch.equal(a["weight"], b["weight"])
    assert not torch.equal(a["weight"], c["weight"])


@pytest.mark.parametrize("optimizer", CHOICES["optimizer"])
def test_every_optimizer_of_a_suite_moves_the_weights(optimizer):
    assert trained(optimizer)[1]["weight"].abs().sum() > 0


def test_a_logical_batch_is_whole_physical_ones_and_a_smaller_last():
    def of(batch, logical):
        return sizes(Workload(model="m", batch=batch, logical_batch=logical))

    assert of(4, None) == [4]
    assert of(4, 4) == [4]
    assert of(4, 8) == [4, 4]
    assert of(4, 10) == [4, 4, 2]


@pytest.mark.parametrize("name", ["nonprivate", "bk", "opacus", "tf_privacy"])
@pytest.mark.parametrize("physical", [3, 5])
def test_physical_batches_add_up_to_the_gradient_of_the_logical_batch(name, physical):
    """Against the loop over all of its examples: the physical batch again and again, and the beginning of it."""
    workload = Workload(model="m", batch=physical, logical_batch=8)
    torch.manual_seed(0)
    model, clip = nn.Linear(4, 3).double(), Clip(max_norm=0.5)
    batch = batch_of(physical, 4)
    batch["x"] = batch["x"].double()
    out = summed(model, prepare(name, model, cross_entropy, clip), workload)(batch)
    repeated = {k: torch.cat([t, t, t])[:8] for k, t in batch.items()}
    expected = prepare(name if name == "nonprivate" else "tf_privacy", model, cross_entropy, clip)(repeated)
    for key, g in expected.grads.items():
        torch.testing.assert_close(out.grads[key], g)
    torch.testing.assert_close(out.losses, expected.losses)
    if expected.norms is not None:
        torch.testing.assert_close(out.norms, expected.norms)


def test_the_gradient_of_a_logical_batch_is_that_of_the_parameters_and_no_other_stays():
    model, workload = nn.Linear(4, 3), Workload(model="m", batch=2, logical_batch=6)
    out = summed(model, prepare("bk", model, cross_entropy, Clip()), workload)(batch_of(2, 4))
    assert all(p.grad is out.grads[name] for name, p in model.named_parameters())


def test_training_divides_by_the_logical_batch_and_updates_once():
    torch.manual_seed(0)
    model, workload = nn.Linear(4, 3).double(), Workload(model="m", batch=2, logical_batch=5)
    before = model.weight.detach().clone()
    batch = batch_of(2, 4)
    batch["x"] = batch["x"].double()
    step = summed(model, prepare("nonprivate", model, cross_entropy, Clip()), workload)
    out = Training(model, step, "sgd")(batch)
    moved = (before - model.weight.detach()) / LEARNING_RATE
    torch.testing.assert_close(moved, out.grads["weight"] / 5, rtol=1e-6, atol=1e-8)


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(DpbenchError, match=r"unknown optimizer 'adam'\. Did you mean adamw"):
        trained("adam")


def test_what_is_timed_is_said_of_every_kind_of_step():
    assert set(SAYS) == set(CHOICES["step"])
