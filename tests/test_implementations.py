"""Every implementation gives the explicit loop's gradient, on every way a parameter meets the batch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import ablations, available, load

ALL = [*available(), *ablations()]
PRIVATE = [name for name in ALL if name != "nonprivate"]
REPRESENTATIVE = ["bk", "opacus", "ghostclip"]
"""One of each kind: detached and ghost, attached and stored, attached with a second backward."""

MIXED = ["in-place activations", "tokens", "conv2d groups, norms", "sequence first, folded addmm", "used twice"]


@pytest.mark.parametrize("case", zoo.CASES)
@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_equals_the_explicit_loop(name, case):
    model, losses, batch, clip, expected = zoo.oracle(case)
    step = prepare(name, model, losses, clip)
    assert zoo.error(zoo.run(step, batch), expected) < 1e-12


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("name", PRIVATE)
def test_every_implementation_equals_the_explicit_loop(name, case):
    model, losses, batch, clip, expected = zoo.oracle(case)
    assert zoo.error(zoo.run(prepare(name, model, losses, clip), batch), expected) < 1e-12


@pytest.mark.parametrize("size", [1, 2, 4, 6, 7])
@pytest.mark.parametrize("name", PRIVATE)
def test_any_batch_size(name, size):
    model, losses, batch, clip, expected = zoo.oracle("tokens", size)
    assert zoo.error(zoo.run(prepare(name, model, losses, clip), batch), expected) < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_an_empty_batch_gives_no_norms_and_zero_gradients(name):
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    out = prepare(name, model, losses, clip)({k: v[:0] for k, v in batch.items()})
    assert out.norms is None or out.norms.shape == (0,)
    assert set(out.grads) == {n for n, _ in model.named_parameters()}
    assert all(not g.any() for g in out.grads.values())


def test_nonprivate_is_the_gradient_of_the_sum():
    model, losses, batch, _, _ = zoo.oracle("tokens")
    out = prepare("nonprivate", model, losses)(batch)
    expected = per_example(model, losses, batch, Clip(1e9))
    out.norms = expected.norms
    assert zoo.error(out, expected) < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_grad_holds_the_sum_and_is_replaced_at_each_call(name):
    model, losses, batch, clip, _ = zoo.oracle("in-place activations")
    step = prepare(name, model, losses, clip)
    first, second = step(batch), step(batch)
    for key, p in model.named_parameters():
        assert p.grad is second.grads[key]
        assert torch.allclose(first.grads[key], second.grads[key])


@pytest.mark.parametrize("function", ["abadi", "automatic", "normalize"])
@pytest.mark.parametrize("name", PRIVATE)
def test_clipping_functions(name, function):
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    clip = Clip(clip.max_norm, function=function)
    expected = per_example(model, losses, batch, clip)
    assert zoo.error(zoo.run(prepare(name, model, losses, clip), batch), expected) < 1e-12


STYLES = ["per-layer", {"embeddings": "*embedding*", "rest": "*"}]


@pytest.mark.parametrize("style", STYLES, ids=["per-layer", "groups"])
@pytest.mark.parametrize("name", PRIVATE)
def test_clipping_styles_are_right_or_refused_by_name(name, style):
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    clip = Clip(clip.max_norm, style=style)
    if not load(name).SUPPORTS.groups:
        with pytest.raises(Refused, match=f"{name} has one clipping factor per example"):
            prepare(name, model, losses, clip)
        return
    expected = per_example(model, losses, batch, clip)
    assert expected.norms.ndim == 2
    assert zoo.error(zoo.run(prepare(name, model, losses, clip), batch), expected) < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_masked_rows_contribute_nothing(name):
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    mask = torch.tensor([True, True, False, True, False])
    out = zoo.run(prepare(name, model, losses, clip), batch, mask=mask)
    kept = prepare(name, model, losses, clip)({k: v[mask] for k, v in batch.items()})
    for key, g in kept.grads.items():
        assert torch.allclose(out.grads[key], g, rtol=1e-12, atol=1e-14)
    if out.norms is not None:
        assert not out.norms[~mask].any()


B, T, WIDTH, LAYERS = 4, 8, 32, 3
UNIT = 2 * B * T * WIDTH**2
GHOST = 2 * B * T**2 * 2 * WIDTH / UNIT
EXPECTED = {
    "nonprivate": {"1": 1, "2a": 1, "2b": 1},
    "opacus": {"1": 1, "2a": 1, "2b": 1, "4": 1, "5": 1},
    "opacus_improved": {"1": 1, "2a": 1, "4": 1, "5": 1},
    "fastgradclip": {"1": 1, "2a": 2, "2b": 1, "4": 1},
    "fastgradclip_improved": {"1": 1, "2a": 1, "2b": 1, "4": 1},
    "ghostclip": {"1": 1, "2a": 2, "2b": 2, "3": 1},
    "mixghostclip": {"1": 1, "2a": 2, "2b": 2, "3": 1},
    "bk": {"1": 1, "2a": 1, "2b": 1, "3": 1},
    "bk_mixghostclip": {"1": 1, "2a": 1, "2b": 1, "3": 1},
    "bk_mixopt": {"1": 1, "2a": 1, "2b": 1, "3": 1},
    "tf_privacy": {"1": 1, "2a": 1, "2b": 1},
    "vmap": {"1": 1, "2a": 1, "4": 1, "5": 1},
    "ablation:bk-without-bookkeeping": {"1": 1, "2a": 2, "2b": 1, "3": 1},
    "ablation:bk-without-ghost-differentiation": {"1": 1, "2a": 1, "2b": 2, "3": 1},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_does_the_modules_of_its_definition_and_no_others(name):
    """Counted on linear layers with 2 T^2 < p d; the first layer has no 2a."""
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    model = nn.Sequential(*layers)
    losses = lambda m, b: m(b["x"]).square().sum((1, 2))  # noqa: E731
    batch = {"x": torch.randn(B, T, WIDTH)}
    step = prepare(name, model, losses)
    for _ in range(2):
        # The counter hooks activations, so that the first step under it makes a plan of its own.
        with FlopCounterMode(display=False) as counter:
            step(batch)
    parts = EXPECTED[name]
    units = sum(parts.get(m, 0) * LAYERS for m in ("1", "2b", "4"))
    units += parts["2a"] * (LAYERS - 1) + parts.get("3", 0) * LAYERS * GHOST + parts.get("5", 0) * LAYERS / T
    assert counter.get_total_flops() == units * UNIT


def test_every_implementation_is_in_the_table_of_modules():
    assert set(EXPECTED) == set(ALL)


@pytest.mark.parametrize("name", ["bk", "bk_mixopt", "opacus_improved"])
def test_instantiates_where_ghost_norms_need_more_space(name):
    """2 T^2 > p d: mixed algorithms take the other branch, with the same result."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(True), nn.Linear(4, 2)).double()
    losses = lambda m, b: m(b["x"]).square().sum((1, 2))  # noqa: E731
    batch = {"x": torch.randn(5, 9, 3, dtype=torch.float64)}
    expected = per_example(model, losses, batch, Clip(3.0))
    assert zoo.error(zoo.run(prepare(name, model, losses, Clip(3.0)), batch), expected) < 1e-12
