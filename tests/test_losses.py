import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from dpbench.errors import DpbenchError
from dpbench.losses import IGNORED, cross_entropy, language_model, language_model_in_chunks


@pytest.fixture
def text():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, 7, generator=g, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(7, (3, 4), generator=g)
    labels[0, 1:] = IGNORED
    labels[1] = IGNORED
    return logits, labels


def test_cross_entropy_is_one_number_per_example():
    logits, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    losses = cross_entropy(logits, labels)
    assert losses.shape == (5,)
    assert torch.allclose(losses.mean(), F.cross_entropy(logits, labels))


def test_language_model_averages_over_the_valid_tokens_of_each_example(text):
    logits, labels = text
    losses = language_model(logits, labels)
    assert losses.shape == (3,)
    for i in (0, 2):
        assert torch.allclose(losses[i], F.cross_entropy(logits[i], labels[i], ignore_index=IGNORED))


def test_an_example_without_a_valid_token_has_loss_and_gradient_zero(text):
    logits, labels = text
    losses = language_model(logits, labels)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert losses[1] == 0
    assert not gradient[1].any()
    assert gradient.isfinite().all()


def test_the_loss_of_an_example_does_not_depend_on_the_others(text):
    logits, labels = text
    together = language_model(logits, labels)
    alone = torch.cat([language_model(logits[i : i + 1], labels[i : i + 1]) for i in range(3)])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("loss", [cross_entropy, language_model])
def test_losses_run_under_vmap(loss):
    shape = (4, 5) if loss is language_model else (4,)
    layer, x = torch.nn.Linear(2, 3).double(), torch.randn(*shape, 2, dtype=torch.float64)
    labels = torch.randint(3, shape)

    def one(parameters, x, y):
        return loss(functional_call(layer, parameters, (x[None],)), y[None])[0]

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    gradients = vmap(grad(one), in_dims=(None, 0, 0))(parameters, x, labels)
    total = torch.autograd.grad(loss(layer(x), labels).sum(), layer.weight)[0]
    assert torch.allclose(gradients["weight"].sum(0), total)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_in_chunks_losses_and_gradients_are_those_of_all_logits(text, size):
    logits, labels = text
    head = torch.nn.Linear(7, 11, dtype=torch.float64)
    whole = language_model(head(logits), labels)
    pieces = language_model_in_chunks(logits, head, labels, size)
    assert torch.allclose(whole, pieces, rtol=1e-14)
    assert pieces[1] == 0
    inputs = [logits, *head.parameters()]
    both = [torch.autograd.grad(losses.square().sum(), inputs) for losses in (whole, pieces)]
    assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(*both, strict=True))


def test_in_chunks_of_no_token_there_is_no_loss(text):
    logits, labels = text
    with pytest.raises(DpbenchError, match="for 0 tokens at a time; expected 1 or more"):
        language_model_in_chunks(logits, torch.nn.Identity(), labels, 0)
