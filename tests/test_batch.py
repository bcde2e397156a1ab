"""Batches: their size, and which of their examples show most."""

from __future__ import annotations

import pytest
import torch

from dpbench.batch import head, perturbed, size, varied
from dpbench.errors import DpbenchError


def test_tensors_agree_on_the_number_of_examples():
    assert size({"x": torch.zeros(5, 2), "y": (torch.zeros(5),)}) == 5
    with pytest.raises(DpbenchError, match=r"shapes \(5, 2\), \(4,\); expected B on axis 0 of each"):
        size([torch.zeros(5, 2), torch.zeros(4)])


def test_the_head_of_a_batch_is_a_batch():
    part = head({"x": torch.arange(10).reshape(5, 2), "y": (torch.arange(5),)}, 2)
    assert size(part) == 2
    assert torch.equal(part["y"][0], torch.tensor([0, 1]))


@pytest.mark.parametrize(
    "make", [lambda: torch.eye(3).to_sparse(), lambda: torch.nested.nested_tensor([torch.ones(2)])]
)
def test_only_dense_tensors_are_batches(make):
    with pytest.raises(DpbenchError, match="holds a .* tensor; expected dense ones"):
        size({"x": make()})


def test_varied_finds_the_padded_and_the_odd_label():
    mask = torch.ones(32, 8, dtype=torch.int64)
    mask[17, 3:] = 0
    labels = torch.zeros(32, dtype=torch.int64)
    labels[9] = 1
    assert {9, 17} <= set(varied({"mask": mask, "y": labels}, 3))


def test_varied_are_different_examples_while_there_are_enough():
    assert len(set(varied({"x": torch.ones(9, 2)}, 4))) == 4
    assert varied({"x": torch.ones(2, 2)}, 4) == [0, 1, 0, 1]
    assert varied({"x": torch.ones(1, 2)}, 4) == [0, 0, 0, 0]


def test_varied_leaves_out_what_is_not_finite():
    x = torch.randn(8, 2)
    x[3] = float("nan")
    x[5] = float("inf")
    assert not {3, 5} & set(varied({"x": x}, 4))


def test_perturbed_changes_one_example_and_no_whole_numbers():
    batch = {"x": torch.rand(4, 3), "ids": torch.arange(12).view(4, 3), "p": torch.ones(4)}
    other = perturbed(batch, 1)
    assert (batch["x"] != other["x"]).any(1).tolist() == [False, True, False, False]
    assert torch.equal(batch["ids"], other["ids"])
    assert torch.equal(batch["p"], other["p"])
