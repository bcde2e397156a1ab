"""The checks one after the other, each in a child, within a budget: a crash or a lack of time is an answer, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpbench.child import Launcher
from dpbench.job import Job
from dpbench.records import Outcome, Workload
from dpbench.supervise import Ended, Finding, Patience, supervise
from tests.benchmarks.gpu_check.check import Answer, Check, Verdict

DEVICE = "cuda:0"
LEAST_S = 5.0
"""No check is begun with less time than that."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, of which check, and the seconds that it took."""

    check: str
    answer: Answer
    seconds: float


def driven(
    launcher: Launcher, checks: Sequence[Check], budget_s: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Answered]:
    """Ask the checks in their order; every part of each gets one answer at least."""
    end = clock() + budget_s
    for check in checks:
        left = end - clock()
        if left < LEAST_S:
            yield from _missing(check, check.parts, Verdict.NOT_DONE, f"{max(left, 0.0):.0f} s were left")
            continue
        yield from _asked(launcher, check, min(check.limit_s, left), clock)


def _asked(launcher: Launcher, check: Check, limit_s: float, clock: Callable[[], float]) -> Iterator[Answered]:
    # A workload on the CPU would have its memory limited.
    job = Job(kind="gpu-check", check=check.name, workload=Workload(model="none", batch=1, device=DEVICE))
    missing, since = list(check.parts), clock()
    verdict, why = Verdict.COULD_NOT, "it said nothing of it"
    for seen in supervise(launcher, job, Patience(limit_s, clock)):
        if isinstance(seen, Finding):
            now = clock()
            values = {**seen.values, "verdict": Verdict(seen.values["verdict"])}
            yield Answered(check.name, Answer(**values), now - since)
            missing, since = [part for part in missing if part != values["part"]], now
        elif isinstance(seen, Ended):
            if seen.outcome is Outcome.TIMED_OUT:
                verdict, why = Verdict.NOT_DONE, f"the check's {limit_s:.0f} s were over"
            else:
                why = f"{seen.outcome}: {seen.reason}"
    yield from _missing(check, missing, verdict, why, clock() - since)


def _missing(
    check: Check, parts: Sequence[str], verdict: Verdict, why: str, seconds: float = 0.0
) -> Iterator[Answered]:
    """The time that was spent is that of the first: the others were not come to."""
    for i, part in enumerate(parts):
        yield Answered(check.name, Answer(part=part, expected="", got=why, verdict=verdict), 0.0 if i else seconds)
