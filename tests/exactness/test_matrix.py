"""Every implementation on every small network, in float64, against the explicit loop over the examples.

Run: ``make exactness``. C is the median norm, dropout is off; at most 1e-10 relative in the norms and
in every parameter's clipped sum (a parameter whose true gradient is zero is compared with the size of
the whole gradient). Batch sizes: a prime, one, T, and for the prime's model the empty batch, too.
"""

from __future__ import annotations

import pytest
import torch

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.reference import per_example
from dpbench.registry import ablations, available
from tests.models.tiny import TINY

TOLERANCE = 1e-10
PRIVATE = [name for name in [*available(), *ablations()] if name != "nonprivate"]
NETWORKS = {**TINY, "vgg11, full size": Workload(model="torchvision:vgg11", batch=3, image_size=32, classes=10)}
LARGE = {"vgg11, full size": (3,), "resnet18": (5, 1)}
"""Networks of many parameters: fewer batch sizes."""

pytestmark = pytest.mark.slow


def errors(name: str, size: int) -> dict[str, float]:
    """The error of each implementation on one network and batch size."""
    task = build(NETWORKS[name])
    model, losses, batch = double(task.model, task.losses, task.batches(size, 0))
    norms = per_example(model, losses, batch, Clip()).norms
    assert norms is not None
    clip = Clip(float(norms.median()))
    expected = per_example(model, losses, batch, clip)
    found = {}
    for implementation in PRIVATE:
        step = prepare(implementation, model, losses, clip)
        found[implementation] = zoo.error(zoo.run(step, batch), expected)
        empty = step({key: value[:0] for key, value in batch.items()})
        assert not any(g.any() for g in empty.grads.values())
        step.close()
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_exact(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    T = NETWORKS[name].seq_len or 8
    worst: dict[str, float] = {}
    for size in LARGE.get(name, (5, 1, T)):
        for implementation, value in errors(name, size).items():
            worst[implementation] = max(worst.get(implementation, 0.0), value)
    with capsys.disabled():
        print(f"\n{name:28s} " + "  ".join(f"{i} {e:.0e}" for i, e in worst.items()), end="")
    assert max(worst.values()) <= TOLERANCE
