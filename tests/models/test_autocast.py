"""Under autocast some of a parameter's uses are in bfloat16 and others in float32, and the norms still agree."""

from dataclasses import replace

import pytest

from dpbench import precision
from dpbench.clipping import Clip
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.reference import per_example
from tests.models.tiny import TINY

pytest.importorskip("transformers")

TIED = ["gpt2", "llama", "opt", "t5"]


@pytest.mark.parametrize("implementation", ["bk", "ghostclip", "opacus"])
@pytest.mark.parametrize("name", TIED)
def test_norms_of_a_tied_embedding_agree_with_the_loop(name, implementation):
    task = build(replace(TINY[name], precision="amp-bf16"))
    model, losses, batch = precision.apply("amp-bf16", task.model, task.losses, task.batches(4, 0))
    expected = per_example(model, losses, batch, Clip(0.1)).norms
    norms = prepare(implementation, model, losses, Clip(0.1))(batch).norms
    assert ((norms - expected).abs() / expected).max() < 2e-2
