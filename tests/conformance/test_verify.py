"""Checks in processes of their own: whatever becomes of one, there is a verdict."""

from __future__ import annotations

import pytest

from dpbench.conformance.checks import KIT, checks
from dpbench.conformance.verdict import Ruling, Verdict, from_plain
from dpbench.conformance.verify import Pair, _told, verify
from dpbench.decoding import DpbenchError
from dpbench.records import Workload
from tests.conformance.mutants import mutant

ANY = Workload(model=KIT, batch=1)
CHECK = "linear/two-axes"


def verdicts(*names, timeout=60.0, processes=2):
    pairs = [Pair(name, CHECK) for name in names]
    return {v.implementation: v for v in verify(pairs, ANY, processes=processes, timeout_s=timeout)}


def test_right_wrong_dead_and_hanging_side_by_side(tmp_path):
    good = mutant(tmp_path)
    wrong = mutant(tmp_path, after="out.norms *= 2")
    dead = mutant(tmp_path, before="os.kill(os.getpid(), 11)")
    found = verdicts(good, wrong, dead, "bk")
    assert found[good].ruling is found["bk"].ruling is Ruling.RIGHT
    assert found[wrong].ruling is Ruling.WRONG
    assert found[dead].ruling is Ruling.CRASHES
    assert "SIGSEGV" in found[dead].message


def test_what_takes_too_long_crashes(tmp_path):
    hangs = mutant(tmp_path, before="time.sleep(600)")
    found = verdicts(hangs, timeout=5.0)
    assert found[hangs].ruling is Ruling.CRASHES
    assert "timed out" in found[hangs].message


def test_left_early_nothing_more_is_begun(tmp_path):
    names = [mutant(tmp_path, prepare=f"open({str(tmp_path)!r} + '/ran{i}', 'w')") for i in range(6)]
    found = verify([Pair(name, CHECK) for name in names], ANY, processes=1)
    next(found)
    found.close()
    assert len(list(tmp_path.glob("ran*"))) < 6


def test_a_verdict_is_the_same_after_json():
    import json

    for check in list(checks(ANY).values())[:1]:
        verdict = check.judge("bk")
        assert from_plain(json.loads(verdict.to_json())) == verdict
    with pytest.raises(DpbenchError, match="verdict.ruling"):
        from_plain({"implementation": "bk", "check": "a", "ruling": "fine"})
    assert Verdict(implementation="a", check="b", ruling=Ruling.RIGHT).native == {}


@pytest.mark.parametrize(
    ("told", "said"), [({"ruling": "fine"}, "what is no verdict"), ({"check": "another"}, "a verdict on bk on another")]
)
def test_what_a_process_tells_is_a_verdict_on_itself_or_none(told, said):
    right = {"implementation": "bk", "check": "tied", "ruling": "right"}
    verdict = _told(Pair("bk", "tied"), {**right, **told})
    assert (verdict.implementation, verdict.check, verdict.ruling) == ("bk", "tied", Ruling.CRASHES)
    assert said in verdict.message
    assert _told(Pair("bk", "tied"), right).ruling is Ruling.RIGHT
