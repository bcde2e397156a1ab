from __future__ import annotations

import pytest
import torch

from dpbench.clipping import Clip, Groups
from dpbench.errors import DpbenchError


def test_factors_by_hand():
    norms = torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64)
    assert Clip(1.0).factors(norms).tolist() == [1, 1, 1, 0.5]
    assert Clip(1.0, stability=0.5).factors(norms).tolist() == [1, 1, 1 / 1.5, 0.4]
    assert Clip(1.0, "automatic", stability=0.5).factors(norms).tolist() == [0, 1, 1 / 1.5, 0.4]
    assert Clip(3.0, "normalize").factors(norms).tolist() == [0, 6, 3, 1.5]


@pytest.mark.parametrize("function", ["abadi", "automatic", "normalize"])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_no_example_adds_more_than_the_sensitivity(function, groups):
    norms = torch.rand(1000, groups, dtype=torch.float64) * 5
    clip = Clip(0.7, function)
    clipped = (clip.factors(norms, groups) * norms).norm(dim=1)
    assert clipped.max() <= clip.sensitivity * (1 + 1e-12)


def test_automatic_has_the_stability_of_its_paper_by_default():
    assert Clip(function="automatic").stability == 0.01
    assert Clip().stability == 0.0


def test_prints_its_formula_and_sensitivity():
    assert str(Clip(0.5)) == "C_i = min(1, 0.5 / ||g_i||); sensitivity 0.5 (add or remove one example)"
    assert "0.5 / (||g_i|| + 0.01)" in str(Clip(0.5, "automatic"))
    assert "per-layer, R / sqrt(K) each" in str(Clip(style="per-layer"))


def test_groups_by_layer_and_by_pattern():
    names = ["a.weight", "a.bias", "b.c.weight"]
    assert Clip(style="per-layer").groups(names) == Groups({"a.weight": 0, "a.bias": 0, "b.c.weight": 1}, 2)
    by_pattern = Clip(style={"biases": "*.bias", "rest": "*"}).groups(names)
    assert by_pattern == Groups({"a.weight": 0, "a.bias": 1, "b.c.weight": 0}, 2)
    with pytest.raises(DpbenchError, match=r"b\.c\.weight is in no clipping group.*Add a last group"):
        Clip(style={"a": "a.*"}).groups(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_norm": 0.0}, "max_norm is 0.0; expected a positive"),
        ({"max_norm": float("nan")}, "max_norm is nan"),
        ({"max_norm": float("inf")}, "max_norm is inf"),
        ({"function": "abbadi"}, "unknown clipping function 'abbadi'. Did you mean abadi"),
        ({"style": "per-layers"}, "unknown clipping style 'per-layers'. Did you mean per-layer"),
        ({"stability": -1.0}, "stability is -1.0; expected zero or more"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(DpbenchError, match=message):
        Clip(**arguments)
