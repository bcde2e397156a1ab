"""Libraries on some checks of the kit; on all of them in ``make conformance``."""

from __future__ import annotations

import pytest

from dpbench.cli.verdicts import told
from dpbench.conformance.candidate import Candidate
from dpbench.conformance.checks import kit
from dpbench.registry import libraries, load

CHECKS = [
    "linear/three-axes", "convolution/groups", "convolution/circular", "embedding/padding", "sharing/tied-head",
    "normalization/layer-norm", "batch/same-again", "threshold/at-the-threshold", "step/noise", "property/sensitivity",
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", libraries())
def test_verdicts_are_those_that_are_declared(name, check):
    if needs := load(name).NEEDS:
        pytest.skip(needs)
    verdict = kit()[check].judge(name)
    assert not Candidate.of(name).surprise(verdict), told(verdict)
