"""Whether examples keep their places and equal shares, worked by hand for a batch of three."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpbench.selecting import SELECTING, Order, order

X = torch.arange(12.0).view(3, 4)
EQUAL = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]], dtype=torch.bool)
UNEQUAL = torch.tensor([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]], dtype=torch.bool)
HERE, AWAY = torch.arange(3), torch.tensor([1, 0, 2])
PACKED = torch._C._VariableFunctions._pack_padded_sequence

CASES = {
    "slices": (Tensor.__getitem__, (X, slice(0, 2)), Order.KEPT),
    "equal mask": (Tensor.__getitem__, (X, EQUAL), Order.KEPT),
    "unequal mask": (Tensor.__getitem__, (X, UNEQUAL), Order.LOST),
    "a mask of positions": (Tensor.__getitem__, (X, (slice(None), EQUAL[0])), Order.KEPT),
    "a mask of examples": (Tensor.__getitem__, (X, EQUAL[:, 0]), Order.LOST),
    "folded, all": (Tensor.__getitem__, (X.flatten(), torch.ones(12, dtype=torch.bool)), Order.KEPT),
    "folded, some": (Tensor.__getitem__, (X.flatten(), EQUAL.flatten()), Order.DOUBTFUL),
    "own rows": (Tensor.__getitem__, (X, (HERE, torch.tensor([3, 0, 1]))), Order.KEPT),
    "own rows, twice each": (Tensor.__getitem__, (X, (HERE.repeat_interleave(2), HERE.repeat(2))), Order.KEPT),
    "own rows, in turn": (Tensor.__getitem__, (X, HERE.repeat(2)), Order.KEPT),
    "others' rows": (Tensor.__getitem__, (X, AWAY), Order.LOST),
    "a table that is no batch": (Tensor.__getitem__, (torch.zeros(7, 2), AWAY), Order.KEPT),
    "index_select": (torch.index_select, (X, 0, AWAY), Order.LOST),
    "index_select, another axis": (torch.index_select, (X, 1, AWAY), Order.KEPT),
    "gather": (torch.gather, (X, 1, HERE[:, None]), Order.KEPT),
    "masked_select": (torch.masked_select, (X, UNEQUAL), Order.LOST),
    "masked_select, a column": (torch.masked_select, (X, torch.ones(3, 1, dtype=torch.bool)), Order.KEPT),
    "nonzero, equal": (torch.nonzero, (EQUAL,), Order.KEPT),
    "nonzero, unequal": (torch.nonzero, (UNEQUAL,), Order.DOUBTFUL),
    "where of two": (torch.where, (UNEQUAL, X, X), Order.KEPT),
    "unique": (torch.unique, (X,), Order.DOUBTFUL),
    "repeated alike": (torch.repeat_interleave, (X, torch.tensor([2, 2, 2])), Order.KEPT),
    "repeated unalike": (torch.repeat_interleave, (X, torch.tensor([1, 2, 3])), Order.LOST),
    "packed, full": (PACKED, (X, torch.tensor([3, 3]), True), Order.KEPT),
    "packed, ragged": (PACKED, (X, torch.tensor([3, 1]), True), Order.LOST),
}


@pytest.mark.parametrize("case", CASES)
def test_order(case):
    function, args, expected = CASES[case]
    assert function in SELECTING
    assert order(function, args, {}, batch=3) is expected
