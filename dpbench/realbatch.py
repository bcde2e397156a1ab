"""The largest batch by real steps: each is tried in a process of its own, from where a trace says it lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpbench.child import Launcher
from dpbench.complexity.maxbatch import MOST, search
from dpbench.errors import DpbenchError, Refused
from dpbench.job import Job
from dpbench.records import Outcome, Workload
from dpbench.supervise import Ended, Finding, Patience, supervise

TIMEOUT = 600.0
"""Seconds after which one step is given up."""


@dataclass(frozen=True, slots=True)
class RealLargest:
    """The largest batch whose step really fits; ``need`` is what was measured there, at one example if none fits."""

    batch: int
    need: int
    traced: int
    """What tracing gave."""
    tries: int
    """Steps that were tried."""


def largest(
    name: str,
    workload: Workload,
    capacity: int,
    traced: int,
    launcher: Launcher,
    most: int = MOST,
    say: Callable[[str], None] = lambda text: None,
) -> RealLargest:
    """The largest batch that runs, and needs at most ``capacity`` bytes as it is measured.

    Raises:
        Refused: as the implementation does.
        DpbenchError: a step failed otherwise than by running out of memory.
    """
    needs: dict[int, int] = {}

    def need(batch: int) -> int:
        if batch not in needs:
            found = _measured(name, replace(workload, batch=batch), capacity, launcher)
            say(f"  {name} B={batch} " + ("out of memory" if found is None else f"{found:,} bytes"))
            needs[batch] = 2 * capacity if found is None else found
        return needs[batch]

    batch = search(need, capacity, most, [max(traced, 1), max(traced, 1) + 1])
    return RealLargest(batch, need(max(batch, 1)), traced, len(needs))


def _measured(name: str, workload: Workload, capacity: int, launcher: Launcher) -> int | None:
    """Bytes of one step, what is resident included; None if it runs out of memory."""
    job = Job(kind="memory", workload=workload, implementations=(name,), capacity=capacity)
    for seen in supervise(launcher, job, Patience(TIMEOUT)):
        if isinstance(seen, Finding):
            figures: dict[str, Any] = seen.values["memory"]
            peak = next(figures[key] for key in ("peak_allocated", "peak_live") if key in figures)
            return int(figures["resident"] + peak)
        if isinstance(seen, Ended):
            if seen.outcome is Outcome.OUT_OF_MEMORY:
                return None
            if seen.outcome is Outcome.REFUSED:
                raise Refused(seen.reason)
            raise DpbenchError(f"{name} at {workload.label()}: {seen.outcome}: {seen.reason}")
    raise DpbenchError(f"{name} at {workload.label()}: the process ended without a figure")
