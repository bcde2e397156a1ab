"""A fast part of ``make false-alarms``: on a simulated noisy machine nothing is called slower that is not."""

from collections import Counter

from dpbench.change import Verdict
from tests.benchmarks.false_alarms import NOISES, verdict

KINDS = len(NOISES)


def test_a_base_beside_itself_is_never_called_slower_or_faster():
    found = Counter(verdict(0.0, seed)[-1] for seed in range(2 * KINDS))
    assert set(found) <= {Verdict.SAME, Verdict.INCONCLUSIVE}
    assert found[Verdict.SAME] > KINDS


def test_a_tenth_more_is_found_on_every_kind_of_noise():
    assert [verdict(0.10, 10**6 + seed)[-1] for seed in range(KINDS)] == [Verdict.SLOWER] * KINDS


def test_a_twentieth_more_is_found_mostly_and_never_called_faster():
    found = Counter(verdict(0.05, 10**6 + seed)[-1] for seed in range(0, KINDS, 3))
    assert found[Verdict.FASTER] == 0
    assert found[Verdict.SLOWER] >= 4
