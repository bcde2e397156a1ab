"""Our implementations on the kit: each check on bk and on one other in turn; all on all in ``make conformance``."""

from __future__ import annotations

import pytest

from dpbench.cli.verdicts import told
from dpbench.conformance import judge
from dpbench.conformance.candidate import Candidate
from dpbench.conformance.checks import kit
from dpbench.registry import ablations, available

ALL = [*available(), *ablations()]
OTHERS = sorted({*ALL} - {"bk"})
CHOSEN = [(name, check) for i, check in enumerate(kit()) for name in ("bk", OTHERS[i % len(OTHERS)])]


@pytest.mark.parametrize(("name", "check"), CHOSEN)
def test_as_declared_and_never_wrong(name, check, monkeypatch):
    # The verdict falls in float64; what stands beside it takes three times as long.
    monkeypatch.setattr(judge, "BESIDE", ())
    if kit()[check].missing:
        pytest.skip(f"needs {kit()[check].needs}")
    who = Candidate.of(name)
    verdict = kit()[check].judge(name)
    assert not who.surprise(verdict), told(verdict)


@pytest.mark.parametrize("name", ALL)
def test_what_clips_declares_nothing_wrong(name):
    """Refused by name, or right."""
    if name != "nonprivate":
        assert {known.ruling for known in Candidate.of(name).expected.known} <= {"refuses"}
