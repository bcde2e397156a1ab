"""What a worker is asked to do, and how it is written down for it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from dpbench.decoding import decode
from dpbench.records import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One child's work: implementations on one workload.

    ``kind``: ``check`` (can all this be built here?), ``fit`` (which batch is the largest?), ``parity`` (is
    the gradient right?),
    ``memory`` (how much does a step need?), ``round`` (how long does a step take?) or ``verify`` (what
    comes out of one conformance check?).
    """

    kind: str
    workload: Workload
    implementations: tuple[str, ...] = ()
    seed: int = 0
    """Of the order in a round; weights and batch have the workload's own."""
    budget_s: float = 1.0
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
        """One line."""
        return json.dumps(asdict(self), separators=(",", ":"))


def from_json(text: str) -> Job:
    """What :meth:`Job.to_json` wrote."""
    job: Job = decode(Job, json.loads(text), "job")
    return job


Message = dict[str, Any]
"""What a worker says, one JSON object a line.

``{"event": "started", "implementation": ...}`` names who is at work, before anything can go wrong;
``{"event": "result", "implementation": ..., ...}`` is a figure; ``{"event": "ended",
"implementation": ..., "outcome": ..., "reason": ...}`` is the end of one; ``{"event": "facts", ...}``
says what the model is; ``{"event": "done"}`` comes last.
"""
