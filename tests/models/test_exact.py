"""On real architectures, made small, the gradient is the explicit loop's: norms and every parameter's clipped sum."""

from functools import lru_cache

import pytest

from dpbench.batch import size
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import available
from tests import zoo
from tests.models.tiny import TINY

REPRESENTATIVE = ["bk", "ghostclip", "opacus", "vmap"]
"""One of each kind: detached and ghost, attached with a second backward, attached and stored, traced."""

LARGE = ("resnet18", "vgg11")
"""Their widths are no options, so a step takes a second: one implementation here, all in ``make exactness``."""

SMALL = [name for name in TINY if name not in LARGE]
EVERYWHERE = ["gpt2", "t5", "cait", "swin", "mlp, in-place, three axes"]
"""One of each shape of difficulty: tied, two stacks, class attention, windows, three axes."""


@lru_cache(maxsize=1)
def oracle(name: str, B: int = 5):
    """A tiny task in float64, a clip at the median norm, and what the explicit loop gives."""
    task = build(TINY[name])
    model, losses, batch = double(task.model, task.losses, task.batches(B, 0))
    norms = per_example(model, losses, batch, Clip()).norms
    clip = Clip(float(norms.median()))
    return model, losses, batch, clip, per_example(model, losses, batch, clip)


def error(implementation: str, name: str, B: int = 5) -> float:
    model, losses, batch, clip, expected = oracle(name, B)
    step = prepare(implementation, model, losses, clip)
    try:
        return zoo.error(zoo.run(step, batch), expected)
    finally:
        step.close()


@pytest.mark.parametrize("implementation", REPRESENTATIVE)
@pytest.mark.parametrize("name", SMALL)
def test_equals_the_explicit_loop(name, implementation):
    assert error(implementation, name) < 1e-10


@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_equals_the_explicit_loop(name):
    assert error("bk_mixopt", name, 2) < 1e-10


@pytest.mark.parametrize("implementation", [i for i in available() if i not in ("nonprivate", *REPRESENTATIVE)])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_every_implementation_equals_the_explicit_loop(name, implementation):
    assert error(implementation, name) < 1e-10


@pytest.mark.parametrize("B", [1, 7, 8])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_whatever_the_batch_size(name, B):
    assert TINY[name].seq_len == 8, "B = T is one of the cases"
    assert all(error(implementation, name, B) < 1e-10 for implementation in REPRESENTATIVE)


@pytest.mark.parametrize("name", ["gpt2", "vit"])
def test_clipping_at_the_median_clips_some_and_leaves_others(name):
    _, _, batch, clip, expected = oracle(name)
    assert 0 < (expected.norms > clip.max_norm).sum() < size(batch)


@pytest.mark.parametrize("name", SMALL)
def test_every_trained_parameter_has_a_gradient(name):
    """A network of which half is never reached would be exact for nothing."""
    model, _, _, _, expected = oracle(name)
    trained = {key for key, p in model.named_parameters() if p.requires_grad}
    without = {key for key, gradient in expected.grads.items() if not gradient.any()}
    assert set(expected.grads) == trained
    assert len(without) <= len(trained) / 4, without
