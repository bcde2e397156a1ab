"""Opacus as itself, beside the explicit loop with Opacus's own constant; what it refuses, and what it leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.parity import Oracle
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import load
from dpbench.tensors import marks

opacus: Any = pytest.importorskip("opacus")

MODES = [f"lib:opacus/{mode}" for mode in ("hooks", "functorch", "ew", "fgc", "ghost")]
S = 1e-6


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.embedding(ids)).tanh()).mean(1)  # type: ignore[no-any-return]


NETWORKS: dict[str, zoo.Case] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 3)), (6,), 0),
    "linear over T": (
        lambda: zoo.Net(lambda n, x: n.o(n.i(x).tanh()).mean(1), i=nn.Linear(6, 5), o=nn.Linear(5, 3)),
        (4, 6),
        0,
    ),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.GroupNorm(2, 4),
            nn.ReLU(),
            nn.Conv2d(4, 4, 3, stride=2),
            nn.Flatten(),
            nn.Linear(48, 3),
        ),
        (3, 9, 8),
        0,
    ),
    "embedding and layer norm": (Text, (5,), 11),
}


def problem(case: str, size: int = 5) -> tuple[nn.Module, Any, Any, Clip]:
    """A network in float64 and a clip at its median norm, with nothing said of stability."""
    torch.manual_seed(0)
    build, shape, integers = NETWORKS[case]
    model, losses, batch = zoo.double(build(), zoo.cross_entropy, zoo.batch_of(size, *shape, integers=integers))
    norms = per_example(model, losses, batch, Clip()).norms
    assert norms is not None
    return model, losses, batch, Clip(float(norms.median()))


@pytest.mark.parametrize("case", NETWORKS)
@pytest.mark.parametrize("name", MODES)
def test_equals_the_loop_with_its_own_constant_and_leaves_the_model_clean(name, case):
    model, losses, batch, clip = problem(case)
    before = marks(model)
    expected = per_example(model, losses, batch, Clip(clip.max_norm, stability=S))
    step = prepare(name, model, losses, clip)
    out = zoo.run(step, batch)
    assert zoo.error(out, expected) < 1e-10
    assert all(p.grad is out.grads[n] for n, p in model.named_parameters())
    assert out.clip == Clip(clip.max_norm, stability=S)
    step.close()
    assert marks(model) == before


@pytest.mark.parametrize("name", MODES)
def test_the_oracle_takes_its_constant_and_tells_it_from_none(name):
    model, losses, batch, clip = problem("linear")
    found = Oracle(model, losses, batch, clip).check(name)
    assert found.parity.error < 1e-13
    assert found.coverage.share == 1
    without = per_example(model, losses, batch, clip)
    assert zoo.error(prepare(name, model, losses, clip)(batch), without) > 1e-8


@pytest.mark.parametrize("name", MODES)
def test_what_the_user_has_frozen_gets_no_gradient(name):
    model, losses, batch, clip = problem("linear")
    model[0].requires_grad_(False)
    out = zoo.run(prepare(name, model, losses, clip), batch)
    assert set(out.grads) == {"2.weight", "2.bias"}
    assert zoo.error(out, per_example(model, losses, batch, Clip(clip.max_norm, stability=S))) < 1e-10


@pytest.mark.parametrize("name", MODES)
def test_masked_rows_and_an_empty_batch_contribute_nothing(name):
    model, losses, batch, clip = problem("linear")
    mask = torch.tensor([True, False, True, True, False])
    expected = per_example(model, losses, batch, Clip(clip.max_norm, stability=S), mask=mask)
    step = prepare(name, model, losses, clip)
    out = zoo.run(step, batch, mask=mask)
    assert all(torch.allclose(out.grads[n], g, rtol=1e-10) for n, g in expected.grads.items())
    empty = step({key: value[:0] for key, value in batch.items()})
    assert empty.norms is not None
    assert empty.norms.shape == (0,)
    assert not any(g.any() for g in empty.grads.values())


@pytest.mark.parametrize("name", MODES)
def test_a_result_is_not_overwritten_by_the_next_step(name):
    model, losses, batch, clip = problem("linear")
    step = prepare(name, model, losses, clip)
    first = step(batch)
    kept = {n: g.clone() for n, g in first.grads.items()}
    step({"x": batch["x"] * 2, "y": batch["y"]})
    assert all(torch.equal(first.grads[n], g) for n, g in kept.items())


@pytest.mark.parametrize("name", ["lib:opacus/hooks", "lib:opacus/ghost"])
def test_what_it_refuses_is_refused_in_its_words_and_nothing_is_left_behind(name):
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4).eval())
    before = marks(model)
    words = rf"^Opacus {opacus.__version__} cannot run this: ShouldReplaceModuleError: BatchNorm"
    with pytest.raises(Refused, match=words):
        prepare(name, model, zoo.cross_entropy)
    assert marks(model) == before


def test_what_it_refuses_in_a_step_is_refused_in_its_words():
    model = zoo.Net(lambda n, x: n.m(n.m(x)), m=nn.Linear(6, 6))
    with pytest.raises(Refused, match="NotImplementedError: Parameter tying is not supported with Ghost Clipping"):
        prepare("lib:opacus/ghost", model, zoo.cross_entropy)(zoo.batch_of(4, 6))


@pytest.mark.parametrize("name", MODES)
def test_clipping_that_it_does_not_have_is_refused(name):
    model, losses, batch, clip = problem("linear")
    with pytest.raises(Refused, match="one clipping factor per example"):
        prepare(name, model, losses, Clip(1.0, style="per-layer"))
    with pytest.raises(Refused, match=r"clips by min\(1, R"):
        prepare(name, model, losses, Clip(1.0, function="automatic"))
    with pytest.raises(Refused, match="cannot sum those of one unit before"):
        prepare(name, model, losses, clip)(batch, unit=torch.zeros(5, dtype=torch.int64))


@pytest.mark.parametrize("name", MODES)
def test_it_does_the_modules_that_are_declared(name):
    """Counted on linear layers with 2 T^2 < p d; the first layer has no 2a."""
    B, T, width, layers = 4, 8, 32, 3
    unit = 2 * B * T * width**2
    model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
    step = prepare(name, model, lambda m, b: m(b["x"]).square().sum((1, 2)))
    with FlopCounterMode(display=False) as counter:
        step({"x": torch.randn(B, T, width)})
    count = load(name).MODULES.split().count
    units = (count("1") + count("2b") + count("4") + count("5") / T) * layers + count("2a") * (layers - 1)
    units += count("3") * layers * 2 * T / width
    # Opacus adds up a ghost norm's T^2 products with an einsum, which counts.
    assert counter.get_total_flops() == units * unit + count("3") * layers * 2 * B * T**2
