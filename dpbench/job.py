"""What a worker is asked to do, and how it is written down for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Protocol

from dpbench.decoding import decode
from dpbench.records import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One child's work: implementations on one workload.

    ``kind``: ``check`` (can all this be built here?), ``sources`` (which source is it?), ``fit`` (which batch is
    the largest?), ``parity`` (is the gradient right?), ``trace`` (what does a step cost, counted?), ``memory``
    (how much does it need?), ``round`` (how long does it take?), ``turns`` (the same, in turns with other
    processes, as it is told to) or ``verify`` (what comes out of one conformance check?).
    """

    kind: str
    workload: Workload
    implementations: tuple[str, ...] = ()
    seed: int = 0
    """Of the order in a round; weights and batch have the workload's own."""
    budget_s: float = 1.0
    """Seconds of timing for each implementation, in a round or in one turn."""
    warm_up_s: float | None = None
    """Seconds after which a step that still gets faster is timed nevertheless; None: those of the timing."""
    native: bool = False
    """Check the gradient in the workload's own precision, because no float64 copy fits."""
    memory_limit: int | None = None
    """Bytes that the child may take; None: what is available."""
    capacity: int | None = None
    """Bytes that a step may take at the largest batch, which a CUDA device is held to; None: what the device has."""
    also: tuple[Workload, ...] = ()
    """Further workloads to look at in a check."""
    check: str = ""
    """The name of the conformance check."""

    def to_json(self) -> str:
        """One line. What is as it would be unsaid is not said, so that a worker of another version takes it."""
        said = {**_said(self), "workload": _said(self.workload)}
        if self.also:
            said["also"] = [_said(workload) for workload in self.also]
        return json.dumps(said, separators=(",", ":"))


def _said(value: Any) -> dict[str, Any]:
    return {f.name: said for f in fields(value) if (said := getattr(value, f.name)) != f.default}


def from_json(text: str) -> Job:
    """What :meth:`Job.to_json` wrote."""
    job: Job = decode(Job, json.loads(text), "job")
    return job


Message = dict[str, Any]
"""What a worker says, one JSON object a line.

``{"event": "started", "implementation": ...}`` names who is at work, before anything can go wrong;
``{"event": "result", "implementation": ..., ...}`` is a figure; ``{"event": "ended",
"implementation": ..., "outcome": ..., "reason": ...}`` is the end of one; ``{"event": "facts", ...}``
says what the model is; ``{"event": "ready"}`` and ``{"event": "turn"}``, that it waits for a word;
``{"event": "done"}`` comes last.
"""


class Send(Protocol):
    """How a worker talks to the one who started it."""

    def __call__(self, message: Message) -> None:
        """Tell of something."""
        ...


class Talk(Send, Protocol):
    """The same, and it is answered."""

    def hear(self) -> str:
        """The next word of whoever started it; empty when there will be none."""
        ...
