"""Networks drawn by chance, on batches of changing shapes: right, or refused by name.

``make generated`` draws many; DRAWS and FIRST choose how many and from which seed.
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter

import pytest
import torch

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError
from dpbench.interface import Output
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import ablations, available, load
from tests.generated import network
from tests.promise import batch_of, squares

STYLES = ["flat", "flat", "per-layer", {"first": "p0", "rest": "*"}]
PRIVATE = [name for name in [*available(), *ablations()] if name != "nonprivate"]


def distance(out: Output, expected: Output, clip: Clip) -> float:
    """The largest error, relative to what all examples together may contribute (their sum may cancel)."""
    assert out.norms is not None
    assert expected.norms is not None
    largest = expected.norms.max().clamp(min=1e-4)
    reach = expected.norms.clamp(max=clip.max_norm).sum().clamp(min=1e-4)
    errors = [(out.grads[name] - g).norm() / reach for name, g in expected.grads.items()]
    return torch.stack([(out.norms - expected.norms).abs().max() / largest, *errors]).max().item()


def outcomes(seed: int) -> list[str]:
    """What became of three batches of one network: right or refused; asserts that none is wrong."""
    chance = random.Random(seed)
    net, d, layers = network(seed)
    clip = Clip(0.5, style=chance.choice(STYLES))
    able = [name for name in PRIVATE if clip.style == "flat" or load(name).SUPPORTS.groups]
    name = chance.choice(able)
    shapes = [(chance.randint(1, 4), chance.randint(1, 4), d) for _ in range(3)]
    step = prepare(name, net, squares, clip)
    found = []
    for i, shape in enumerate(shapes):
        batch = batch_of(*shape, seed=seed + i)
        unit = torch.tensor([chance.randint(0, 3) for _ in range(shape[0])]) if chance.random() < 0.3 else None
        try:
            expected = per_example(copy.deepcopy(net), squares, batch, clip, unit=unit)
        except (RuntimeError, ValueError):
            return [*found, "torch has no gradient for it"]
        try:
            out = step(batch, unit=unit)
        except DpbenchError as refusal:
            found.append(str(refusal)[:40])
        else:
            error = distance(out, expected, clip)
            assert error < 1e-9, (seed, name, clip, shapes[: i + 1], unit, layers, error)
            found.append("right")
    return found


def drawn(seeds: range) -> Counter[str]:
    """All outcomes of the networks of ``seeds``."""
    return Counter(outcome for seed in seeds for outcome in outcomes(seed))


def test_generated_networks_are_right_or_refused():
    found = drawn(range(60))
    assert found["right"] > 0.8 * found.total(), found


@pytest.mark.slow
def test_many_generated_networks(capsys: pytest.CaptureFixture[str]) -> None:
    first, draws = int(os.environ.get("FIRST", "1000")), int(os.environ.get("DRAWS", "2000"))
    found = drawn(range(first, first + draws))
    assert found["right"] > 0.8 * found.total(), found
    with capsys.disabled():
        print("\n" + "\n".join(f"{count:6d}  {outcome}" for outcome, count in found.most_common()))
