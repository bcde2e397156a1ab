import pytest
import torch

from dpbench.built import Built, clip_of
from dpbench.errors import DpbenchError
from dpbench.records import Workload

MLP = "synthetic:mlp(width=8,depth=2)"


def test_weights_and_batch_are_those_of_the_seed():
    a, b, c = (Built(Workload(model=MLP, batch=4, seed=s), 4) for s in (1, 1, 2))
    for one, other in zip(a.model.parameters(), b.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(a.batch["x"], b.batch["x"])
    assert not torch.equal(a.batch["x"], c.batch["x"])
    assert not torch.equal(next(a.model.parameters()), next(c.model.parameters()))


def test_the_batch_has_the_size_that_was_asked_for_and_not_the_workloads():
    assert len(Built(Workload(model=MLP, batch=100), 3).batch["x"]) == 3


def test_the_precision_is_applied():
    built = Built(Workload(model=MLP, batch=2, precision="bf16"), 2)
    assert built.batch["x"].dtype == next(built.model.parameters()).dtype == torch.bfloat16


def test_facts_are_plain_values():
    facts = Built(Workload(model="synthetic:transformer", batch=2, seq_len=16), 2).facts
    assert set(facts) == {"parameters", "trainable", "tokens", "source", "kind"}
    assert facts["tokens"] == 16
    assert all(v is None or isinstance(v, int | str) for v in facts.values())


@pytest.mark.parametrize("axes", [{"device": "cuda:99"}, {"precision": "tf32"}, {"model": "synthetic:nlp"}])
def test_what_is_not_there_is_refused_before_anything_is_built(axes):
    with pytest.raises(DpbenchError):
        Built(Workload(**{"model": MLP, "batch": 2, **axes}), 2)


def test_the_workload_says_how_to_clip():
    clip = clip_of(Workload(model=MLP, batch=2, max_norm=0.5, clip_function="automatic", clip_style="per-layer"))
    assert (clip.max_norm, clip.function, clip.style) == (0.5, "automatic", "per-layer")
