from __future__ import annotations

import torch

from implementations.peers.threshold import Threshold


def test_it_is_its_number_and_tells_the_norms_once():
    R = Threshold(3.0)
    norms = torch.tensor([1.0, 6.0], dtype=torch.float64)
    assert R.norms(0.5) is None
    assert (R / (norms + 0.5)).tolist() == [2.0, 3.0 / 6.5]
    assert torch.equal(R.norms(0.5), norms)
    assert R.norms(0.5) is None
    assert (R, R * 2, R / 2) == (3.0, 6.0, 1.5)
