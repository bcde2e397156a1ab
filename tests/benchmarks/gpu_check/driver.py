"""The checks one after the other, each in a child, within a budget: a crash or a lack of time is an answer, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpbench.child import Launcher
from dpbench.job import Job, Message
from dpbench.outcome import of_ending
from dpbench.records import Workload
from dpbench.told import Garbled
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
    missing, since = list(check.parts), clock()
    verdict, why = Verdict.COULD_NOT, "it said nothing of it"
    for message in _heard(launcher, check, limit_s, clock):
        match message:
            case {"event": "answer", "answer": values}:
                now = clock()
                yield Answered(check.name, Answer(**{**values, "verdict": Verdict(values["verdict"])}), now - since)
                missing, since = [part for part in missing if part != values["part"]], now
            case {"event": "over", "reason": reason}:
                verdict, why = Verdict.NOT_DONE, reason
            case {"event": "ended", "reason": reason}:
                why = reason
    yield from _missing(check, missing, verdict, why, clock() - since)


def _heard(launcher: Launcher, check: Check, limit_s: float, clock: Callable[[], float]) -> Iterator[Message]:
    """What the child of a check says; how it ended if it was not by itself."""
    # A workload on the CPU would have its memory limited.
    job = Job(kind="gpu-check", check=check.name, workload=Workload(model="none", batch=1, device=DEVICE))
    end = clock() + limit_s
    child = launcher.start(job)
    try:
        while (message := child.receive(max(0.0, end - clock()))) != {"event": "done"}:
            if message is None:
                outcome, reason = of_ending(child.wait())
                yield {"event": "ended", "reason": f"{outcome}: {reason}"}
                return
            yield message
    except TimeoutError:
        yield {"event": "over", "reason": f"the check's {limit_s:.0f} s were over"}
    except Garbled as error:
        yield {"event": "ended", "reason": f"it said {error}"}
    finally:
        child.kill()
        child.wait()


def _missing(
    check: Check, parts: Sequence[str], verdict: Verdict, why: str, seconds: float = 0.0
) -> Iterator[Answered]:
    """The time that was spent is that of the first: the others were not come to."""
    for i, part in enumerate(parts):
        yield Answered(check.name, Answer(part=part, expected="", got=why, verdict=verdict), 0.0 if i else seconds)
