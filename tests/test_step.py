import pytest
import torch
from torch import nn

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError
from dpbench.preparation import prepare
from dpbench.step import LEARNING_RATE, NOISE_MULTIPLIER, SAYS, Training
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


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(DpbenchError, match=r"unknown optimizer 'adam'\. Did you mean adamw"):
        trained("adam")


def test_what_is_timed_is_said_of_every_kind_of_step():
    assert set(SAYS) == set(CHOICES["step"])
