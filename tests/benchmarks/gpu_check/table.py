"""Answers for people: a line as each comes, and how many there were of each verdict at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.benchmarks.gpu_check.check import Verdict
from tests.benchmarks.gpu_check.driver import Answered


def lines(one: Answered) -> list[str]:
    """Verdict, check, part and seconds; what was got, and where that is not it, what was expected."""
    answer = one.answer
    said = [f"{answer.verdict:9}  {one.check}: {answer.part}  ({one.seconds:.1f} s)", f"{'':11}{answer.got}"]
    if answer.verdict is not Verdict.PASSED and answer.expected:
        said.append(f"{'':11}expected: {answer.expected}")
    return said


def summary(answered: Sequence[Answered]) -> str:
    """``12 passed, 1 differs``, and who."""
    counts = Counter(one.answer.verdict for one in answered)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    who = [f"{one.check}: {one.answer.part}" for one in answered if one.answer.verdict is Verdict.DIFFERS]
    return f"{said}; differs: {'; '.join(who)}" if who else said
