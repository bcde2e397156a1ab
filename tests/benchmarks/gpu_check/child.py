"""What the child of a check does: run it, and tell of each answer as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from dpbench.job import Job, Talk
from dpbench.outcome import of_exception
from dpbench.records import plain
from tests.benchmarks.gpu_check.check import Answer, Check
from tests.benchmarks.gpu_check.checks import CHECKS


def work(job: Job, send: Talk) -> None:
    """Ask the check that the job names."""
    asked(CHECKS, job, send)


def asked(checks: Sequence[Check], job: Job, send: Talk) -> None:
    """The same, of any checks."""

    def say(answer: Answer) -> None:
        send({"event": "answer", "answer": plain(asdict(answer))})

    try:
        next(check for check in checks if check.name == job.check).run(say)
    except Exception as error:
        outcome, reason = of_exception(error)
        send({"event": "ended", "reason": f"{outcome}: {reason}"})
    send({"event": "done"})
