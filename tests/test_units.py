"""Units are clipped as a whole: every implementation against the loop, whatever the sizes of the units."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.numerics import squared_norms
from dpbench.ops import convolution
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import ablations, available, load
from dpbench.units import Units
from tests.ops.test_convolution import GEOMETRIES, use_of
from tests.promise import batch_of, squares

PRIVATE = [name for name in [*available(), *ablations()] if name != "nonprivate"]
B = 7
PATTERNS = {
    "each its own": [0, 1, 2, 3, 4, 5, 6],
    "each its own, in another order": [6, 2, 0, 1, 5, 3, 4],
    "one for all": [2] * B,
    "of unequal sizes": [0, 1, 0, 0, 5, 0, 2],
    "numbers far apart": [3000, 1, 1, 3000, 70, 70, 1],
}
MASK = torch.tensor([True, False, True, True, False, True, False])
CASES = [
    "in-place activations", "sequence first, folded addmm", "tokens", "used twice", "one weight, three functions",
    "chunks of one weight", "conv2d groups, norms", "conv2d circular, depthwise, dilated", "conv1d stride, conv3d",
    "conv folded into the batch", "transposed convolution", "attention", "embedding bag", "bilinear, einsum, prelu",
    "weight norm", "prompt tokens", "table by index", "computed and thrown away",
]  # fmt: skip


def adapted(net: Any, x: Tensor) -> Tensor:
    h = net.i(x) + net.b(net.a(x))
    return net.o(h.tanh()).mean(1)


def low_rank() -> nn.Module:
    net = zoo.Net(adapted, i=zoo.L(6, 5), a=zoo.L(6, 2, False), b=zoo.L(2, 5, False), o=zoo.L(5, 3))
    net.i.requires_grad_(False)
    net.o.bias.requires_grad_(False)
    return net


@pytest.fixture(autouse=True)
def _low_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(zoo.CASES, "low rank", (low_rank, (4, 6), 0))


@pytest.mark.parametrize("case", [*CASES, "low rank"])
@pytest.mark.parametrize("name", PRIVATE)
def test_equals_the_explicit_loop(name, case):
    model, losses, batch, clip, _ = zoo.oracle(case, B)
    step = prepare(name, model, losses, clip)
    for numbers in PATTERNS.values():
        unit = torch.tensor(numbers)
        for mask in (None, MASK):
            expected = per_example(model, losses, batch, clip, unit=unit, mask=mask)
            out = step(batch, unit=unit, mask=mask)
            assert out.norms.shape == (max(numbers) + 1,)
            assert zoo.error(out, expected) < 1e-12


@pytest.mark.parametrize("style", ["per-layer", {"embeddings": "*embedding*", "rest": "*"}], ids=["layers", "groups"])
@pytest.mark.parametrize("name", [name for name in PRIVATE if load(name).SUPPORTS.groups])
def test_with_several_factors_for_each_unit(name, style):
    model, losses, batch, clip, _ = zoo.oracle("tokens", B)
    clip, unit = Clip(clip.max_norm, style=style), torch.tensor(PATTERNS["of unequal sizes"])
    expected = per_example(model, losses, batch, clip, unit=unit)
    assert zoo.error(zoo.run(prepare(name, model, losses, clip), batch, unit=unit), expected) < 1e-12


@pytest.mark.parametrize("name", PRIVATE)
def test_each_its_own_unit_is_no_unit(name):
    model, losses, batch, clip, expected = zoo.oracle("conv2d groups, norms", B)
    step = prepare(name, model, losses, clip)
    assert zoo.error(step(batch, unit=torch.arange(B)), expected) < 1e-12
    assert zoo.error(step(batch), expected) < 1e-12


@pytest.mark.parametrize("case", ["tokens", "conv2d groups, norms"])
@pytest.mark.parametrize("function", ["abadi", "automatic", "normalize"])
@pytest.mark.parametrize("name", PRIVATE)
def test_a_unit_adds_no_more_than_the_sensitivity(name, function, case):
    model, losses, batch, clip, _ = zoo.oracle(case, B)
    clip, unit = Clip(clip.max_norm / 4, function), torch.tensor(PATTERNS["of unequal sizes"])
    step = prepare(name, model, losses, clip)
    whole = step(batch, unit=unit).grads
    for number in unit.unique():
        kept = unit != number
        rest = step({key: value[kept] for key, value in batch.items()}, unit=unit[kept]).grads
        moved = torch.stack([(whole[key] - rest[key]).norm() for key in whole]).norm()
        assert 0 < moved <= clip.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("name", available())
def test_no_examples_and_no_units(name):
    model, losses, batch, clip, _ = zoo.oracle("tokens")
    out = prepare(name, model, losses, clip)(
        {key: value[:0] for key, value in batch.items()}, unit=torch.zeros(0, dtype=torch.int64)
    )
    assert out.norms is None or out.norms.shape == (0,)
    assert all(not g.any() for g in out.grads.values())


def test_nonprivate_gives_the_sum_whatever_the_units():
    model, losses, batch, _, _ = zoo.oracle("tokens", B)
    step = prepare("nonprivate", model, losses)
    plain = step(batch).grads
    with_units = step(batch, unit=torch.zeros(B, dtype=torch.int64)).grads
    assert all(torch.equal(with_units[key], g) for key, g in plain.items())


def test_all_that_is_shipped_supports_units():
    assert all(load(name).SUPPORTS.units for name in available())


def test_who_does_not_is_refused_by_name(tmp_path):
    path = tmp_path / "flat.py"
    path.write_text(
        "from dpbench.interface import Supports\nfrom dpbench.registry import load\n"
        "TITLE, MODULES, SUPPORTS, PRIVATE = 'Flat', '1 2a 3 2b', Supports(), True\nprepare = load('bk').prepare\n"
    )
    step = prepare(str(path), zoo.L(4, 3), squares)
    with pytest.raises(Refused, match=r"flat\.py clips each example by itself.*units=False.*use bk, bk_mixopt"):
        step({"x": torch.randn(B, 4)}, unit=torch.arange(B))


T, WIDTH = 8, 32
PRODUCT = 2 * B * T * WIDTH**2


def flops(name: str, unit: Tensor) -> int:
    """Of a step on one linear layer, which has no 2a; 2 T^2 < p d for one example, but not for five or more."""
    torch.manual_seed(0)
    step = prepare(name, zoo.L(WIDTH, WIDTH, False).double(), squares)
    batch = batch_of(B, T, WIDTH)
    for _ in range(2):
        with FlopCounterMode(display=False) as counter:
            step(batch, unit=unit)
    return counter.get_total_flops()


@pytest.mark.parametrize("sizes", [[1] * B, [3, 3, 1], [B], [5, 1, 1]])
def test_ghost_norms_multiply_within_units_alone(sizes):
    """Nothing is padded to the largest unit, and no two units meet."""
    unit = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    grams = sum(2 * (n * T) ** 2 * 2 * WIDTH for n in sizes)
    assert flops("bk", unit) == 2 * PRODUCT + grams


@pytest.mark.parametrize(
    ("name", "ghost", "instantiated"),
    [
        # In products: 1 and 3 2b, or 1 and 4 2b, where the wasted 2b of ghost layers is one more.
        ("bk_mixghostclip", 2, 3),
        ("mixghostclip", 3, 3),
    ],
)
def test_the_layerwise_decision_is_about_the_largest_unit(name, ghost, instantiated):
    """2 (n T)^2 < p d: 2 x 16^2 = 512 and 2 x 24^2 = 1152 beside 32 x 32 = 1024."""
    pairs, threes = torch.tensor([0, 1, 0, 2, 3, 4, 5]), torch.tensor([0, 1, 0, 2, 3, 0, 5])
    grams = 2 * (2 * T) ** 2 * 2 * WIDTH + 5 * 2 * T**2 * 2 * WIDTH
    assert flops(name, pairs) == ghost * PRODUCT + grams
    assert flops(name, threes) == instantiated * PRODUCT


@pytest.mark.parametrize("many", [0, 10**9], ids=["library", "unfolded"])
@pytest.mark.parametrize("move", [0, 10**9], ids=["products are dear", "moves are dear"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g['size']} {g['k']} groups {g['groups']}")
def test_a_convolution_of_joined_images_is_the_sum_of_theirs(geometry, move, many, monkeypatch):
    use, ds = use_of(geometry)
    examples = torch.tensor([[2, 0], [1, 1]])
    expected = use.instantiate(ds)[examples].sum(1)
    monkeypatch.setattr(convolution, "MOVE", move)
    monkeypatch.setattr(convolution, "MANY_POSITIONS", many)
    joined, ds = use.joined(ds, examples)
    assert torch.allclose(joined.instantiate(ds), expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(joined.squared_ghost_norm(ds), squared_norms(expected), rtol=1e-12)


def test_rows_by_hand():
    """Unit 4 has example 1, unit 9 examples 0 and 3, unit 0 examples 2 and 4."""
    units = Units(torch.tensor([9, 4, 0, 9, 0]), torch.device("cpu"))
    assert units.members == [[1], [0, 3], [2, 4]]
    assert [examples.tolist() for examples in units.by_size] == [[[1]], [[0, 3], [2, 4]]]
    assert units.sum(torch.tensor([1.0, 2, 4, 8, 16])).tolist() == [2, 9, 20]
    assert units.of_examples(torch.tensor([1.0, 2, 3])).tolist() == [2, 1, 3, 2, 3]
    assert units.by_number(torch.tensor([1.0, 2, 3])).tolist() == [3, 0, 0, 0, 1, 0, 0, 0, 0, 2]
    assert (len(units), units.largest) == (3, 2)


@pytest.mark.parametrize("name", PRIVATE)
def test_transposed_convolutions_join_the_examples_of_a_unit(name):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2), nn.Tanh(), nn.ConvTranspose1d(6, 2, 2)
    ).double()
    batch, unit = {"x": torch.randn(5, 4, 6, dtype=torch.float64)}, torch.tensor([2, 0, 2, 2, 0])
    losses = lambda m, b: m(b["x"]).square().sum((1, 2))  # noqa: E731
    expected = per_example(net, losses, batch, Clip(3.0), unit=unit)
    assert zoo.error(prepare(name, net, losses, Clip(3.0))(batch, unit=unit), expected) < 1e-12


def test_numbers_that_no_norms_can_be_given_out_by_are_refused():
    net = nn.Linear(4, 3)
    step = prepare("bk", net, lambda m, b: m(b["x"]).square().sum(1))
    with pytest.raises(DpbenchError, match="return_inverse=True"):
        step({"x": torch.randn(2, 4)}, unit=torch.tensor([0, 10**13]))
