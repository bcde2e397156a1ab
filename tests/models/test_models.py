import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.utils import _pytree as pytree

from dpbench.batch import size
from dpbench.models import available, build
from tests.models.tiny import TINY

NAMES = list(TINY)


@cache
def built(name):
    """For tests that leave it as it is; many of them build the same."""
    return build(TINY[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_what_it_promises(name):
    torch.manual_seed(7)
    expected = torch.get_rng_state()
    task = build(TINY[name])
    assert torch.equal(torch.get_rng_state(), expected)
    assert {(p.dtype, p.device.type) for p in task.model.parameters()} == {(torch.float32, "cpu")}
    assert task.model.training
    assert task.kind in ("text", "image", "vector")
    assert task.parameters == sum(p.numel() for p in task.model.parameters())
    assert 0 < task.trainable <= task.parameters
    assert task.source
    batch = task.batches(3, 0)
    losses = task.losses(task.model, batch)
    assert losses.shape == (3,)
    assert losses.isfinite().all()
    assert losses.requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_an_example_is_the_same_alone(name):
    task = built(name)
    batch = task.batches(3, 0)
    with torch.no_grad():
        together = task.losses(task.model, batch)
        alone = [
            task.losses(task.model, pytree.tree_map_only(torch.Tensor, lambda t, i=i: t[i : i + 1], batch))
            for i in range(3)
        ]
    assert torch.allclose(together, torch.cat(alone), rtol=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "roberta", "t5", "vit", "resnet18", "cnn", "transformer", "gpt2 lora"])
def test_weights_and_batches_are_seeded(name):
    first, again, other = build(TINY[name]), build(TINY[name]), build(replace(TINY[name], seed=1))
    weights = [torch.cat([p.detach().flatten() for p in task.model.parameters()]) for task in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    batches = [pytree.tree_leaves(task.batches(4, seed)) for task, seed in ((first, 0), (again, 0), (first, 1))]
    assert all(torch.equal(a, b) for a, b in zip(batches[0], batches[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(batches[0], batches[2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_the_size_asked_for(name):
    batches = built(name).batches
    assert [size(batches(B, 0)) for B in (0, 1, 5)] == [0, 1, 5]


def test_text_says_how_many_tokens_an_example_has():
    assert {name: built(name).tokens for name in ("gpt2", "roberta", "resnet18")} == {
        "gpt2": 8,
        "roberta": 8,
        "resnet18": None,
    }


def test_what_there_is_can_be_listed_without_the_libraries():
    code = (
        "import sys\n"
        "for name in ('timm', 'torchvision', 'transformers', 'peft'): sys.modules[name] = None\n"
        "import dpbench.models as m; found = m.available()\n"
        "print(len(found), found['transformers:gpt2'], found['synthetic:mlp'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "openai-community/gpt2" in done.stdout


def test_every_family_is_listed():
    assert {name.partition(":")[0] for name in available()} >= {"transformers", "timm", "torchvision", "synthetic"}


def test_nothing_is_downloaded_and_no_library_is_imported_early():
    code = (
        "import sys, socket\n"
        "import dpbench.models as m\n"
        "print([n for n in ('timm', 'torchvision', 'transformers', 'peft') if n in sys.modules])\n"
        "def refuse(*a, **k): raise AssertionError('a connection was opened')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from tests.models.tiny import TINY\n"
        "[m.build(TINY[n]) for n in ('gpt2', 'vit', 'resnet18', 'gpt2 lora')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
