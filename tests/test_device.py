"""All that a step is made of lies on the model's device, whose name is not the CPU's."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest
import torch

from dpbench.built import Built, clip_of
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.parity import Oracle, difference
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.reference import per_example
from dpbench.registry import load

NETWORKS = {
    "gpt2": Workload(model="transformers:gpt2(n_embd=16,n_head=2,vocab_size=32)", layers=1, seq_len=6, batch=4),
    "cnn": Workload(model="synthetic:cnn(channels=4,depth=2)", image_size=6, batch=4),
    "vit": Workload(
        model="timm:vit_tiny_patch16_224(embed_dim=12,num_heads=2,patch_size=4)", layers=1, image_size=8, batch=4
    ),
}
CUDA = "cuda:0"
NAMES = ("nonprivate", "tf_privacy", "opacus", "ghostclip", "bk_mixopt")
"""Those whose code the others share. Not vmap: batched tensors of torch.func do not wrap ours."""


def checked(network: str, precision: str | None) -> dict[str, bool]:
    """Whether each implementation gives what the loop gives, on a device that is not there."""
    from tests.pretended import pretended

    torch.set_num_threads(1)
    workload = replace(NETWORKS[network], device=CUDA, precision=precision or "fp32")
    with pretended():
        built = Built(workload, 3)
        assert {p.device for p in built.model.parameters()} == {torch.device(CUDA)}
        oracle = Oracle(built.model, built.losses, built.batch, clip_of(workload), precision)
        return {name: oracle.check(name).parity.passed for name in NAMES}


def errors_with_marks(network: str) -> dict[str, float]:
    """Of a step with units and a mask that were left on the CPU."""
    from tests.pretended import pretended

    torch.set_num_threads(1)
    unit, mask = torch.tensor([0, 1, 1, 2]), torch.tensor([True, False, True, True])
    with pretended():
        built = Built(replace(NETWORKS[network], device=CUDA), 4)
        model, losses, batch = double(built.model, built.losses, built.batch)
        found = {}
        for name in NAMES:
            if load(name).PRIVATE:
                true = per_example(model, losses, batch, Clip(1e-2), unit=unit, mask=mask)
                got = prepare(name, model, losses, Clip(1e-2))(batch, unit=unit, mask=mask)
                found[name] = difference(got, true, 1e-16)[0]
        return found


@pytest.fixture(scope="module")
def fresh():
    """Processes of their own: torch takes CUDA for initialised in them."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield lambda function, *args: pool.submit(function, *args).result()


@pytest.mark.parametrize(("network", "precision"), [("gpt2", None), ("vit", "bf16")])
def test_every_implementation_computes_on_the_models_device(fresh, network, precision):
    assert fresh(checked, network, precision) == dict.fromkeys(NAMES, True)


def test_units_and_masks_may_be_left_on_the_cpu(fresh):
    found = fresh(errors_with_marks, "cnn")
    assert len(found) == 4
    assert max(found.values()) < 1e-12, found
