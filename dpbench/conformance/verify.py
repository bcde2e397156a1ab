"""Every check on every implementation, each pair in a process of its own, as many at once as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from queue import SimpleQueue

from dpbench.child import Launcher
from dpbench.conformance.verdict import Ruling, Verdict, from_plain
from dpbench.contain import cores
from dpbench.errors import DpbenchError
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import Outcome, Workload
from dpbench.supervise import Ended, Finding, Patience, supervise

TIMEOUT = 120.0
"""Seconds after which a check is given up."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One check on one implementation."""

    implementation: str
    check: str


def verify(
    pairs: Sequence[Pair],
    workload: Workload,
    *,
    processes: int | None = None,
    timeout_s: float = TIMEOUT,
    server: Callable[[], ForkServer] = ForkServer,
) -> Iterator[Verdict]:
    """The verdicts, as they come; ``workload`` is the user's model, or stands for the kit."""
    count = min(processes or cores(), len(pairs))
    idle: SimpleQueue[ForkServer] = SimpleQueue()

    def one(pair: Pair) -> Verdict:
        launcher = idle.get()
        try:
            return found(pair, workload, launcher, timeout_s)
        finally:
            idle.put(launcher)

    with ExitStack() as stack:
        servers = [stack.enter_context(server()) for _ in range(count)]
        for launcher in servers:
            idle.put(launcher)
        pool = stack.enter_context(closing_pool(count))
        try:
            for done in as_completed([pool.submit(one, pair) for pair in pairs]):
                yield done.result()
        except BaseException:
            # Left early: whoever is at work is not waited for.
            for launcher in servers:
                launcher.close()
            raise


class closing_pool(ThreadPoolExecutor):  # noqa: N801
    """Threads that, left early, do not begin what still waits."""

    def __exit__(self, *error: object) -> None:
        self.shutdown(wait=True, cancel_futures=True)


def found(pair: Pair, workload: Workload, launcher: Launcher, timeout_s: float = TIMEOUT) -> Verdict:
    """One verdict; a process that dies, or takes too long, is one as well."""
    # As many processes as there are cores run at a time: more threads would wait for each other.
    workload = replace(workload, threads=1)
    job = Job(kind="verify", workload=workload, implementations=(pair.implementation,), check=pair.check)
    verdict = _ended(pair, Outcome.FAILED, "its process ended without a verdict")
    for event in supervise(launcher, job, Patience(timeout_s)):
        if isinstance(event, Finding):
            verdict = _told(pair, event.values["verdict"])
        elif isinstance(event, Ended):
            verdict = _ended(pair, event.outcome, event.reason)
    return verdict


def _told(pair: Pair, value: object) -> Verdict:
    """The verdict that a child tells, unless it is none, or one on something else."""
    try:
        verdict = from_plain(value)
    except DpbenchError as error:
        return _ended(pair, Outcome.FAILED, f"its process told what is no verdict: {error}")
    if (verdict.implementation, verdict.check) != (pair.implementation, pair.check):
        about = f"{verdict.implementation} on {verdict.check}"
        return _ended(pair, Outcome.FAILED, f"its process told a verdict on {about}, expected one on itself")
    return verdict


def _ended(pair: Pair, outcome: Outcome, reason: str) -> Verdict:
    ruling = Ruling.REFUSES if outcome is Outcome.REFUSED else Ruling.CRASHES
    message = reason if outcome in (Outcome.REFUSED, Outcome.FAILED) else f"{outcome}: {reason}"
    return Verdict(implementation=pair.implementation, check=pair.check, ruling=ruling, message=message)
