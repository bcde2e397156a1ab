"""What a child may say. Code of implementations runs in it and can write into the same line, so nothing is believed.

Whoever something is said of has to be at work, and a figure has to be one that there can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any

from dpbench.coverage import Coverage
from dpbench.decoding import decode
from dpbench.errors import DpbenchError
from dpbench.job import Job, Message
from dpbench.records import Outcome, Parity, Traced

_MOST = 2**63


class Garbled(Exception):
    """Something came that no worker says; its text tells what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The largest batch, and bytes."""

    batch: int
    need: int
    capacity: int

    def can_be(self) -> bool:
        """Whether there can be such figures."""
        return _counts([self.batch, self.need, self.capacity])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of the check of a gradient."""

    parity: Parity
    coverage: Coverage

    def can_be(self) -> bool:
        """Whether there can be such figures; the error of a gradient may be none that is finite."""
        p, c = self.parity, self.coverage
        refused = c.asked - c.trained - sum(c.frozen.values())
        return (
            _counts([c.asked, c.trained, refused, *c.frozen.values(), *c.norms.values()])
            and 0 <= p.tolerance < inf
            and not p.error < 0
            and (p.error <= p.tolerance or not p.passed)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The costs of a step."""

    traced: Traced

    def can_be(self) -> bool:
        """Whether there can be such figures."""
        t, r = self.traced, self.traced.roofline
        return _counts([t.flops, t.bytes, t.peak, *t.modules.values()]) and (
            r is None or all(0 <= s < inf for s in (r.low, r.expected, r.high))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Bytes, by the name of the metric."""

    memory: dict[str, float]

    def can_be(self) -> bool:
        """Whether there can be such figures."""
        return bool(self.memory) and all(0 <= value < inf for value in self.memory.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One round."""

    seconds: tuple[float, ...]
    at: tuple[float, ...]
    started: float
    warm_up: int
    settled: bool

    def can_be(self) -> bool:
        """Whether there can be such figures; a clock that was set back gives a start before the round's."""
        return (
            0 < len(self.seconds) == len(self.at)
            and all(0 < s < inf for s in self.seconds)
            and all(isfinite(t) for t in (*self.at, self.started))
            and _counts([self.warm_up])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """What came of a conformance check, which those who asked for it read."""

    verdict: dict[str, Any]

    def can_be(self) -> bool:
        """Whether it can be."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """Which source it is."""

    source: str

    def can_be(self) -> bool:
        """Whether it can be."""
        return True


FOUND: dict[str, type] = {
    "sources": Hashed,
    "fit": Fit,
    "parity": Judged,
    "trace": Counted,
    "memory": Weighed,
    "round": Times,
    "turns": Times,
    "verify": Ruled,
}
"""By the kind of the job."""


def refuse_garbled(message: Message, job: Job, who: str | None) -> None:
    """Raise Garbled unless a worker at ``job`` may say this while ``who`` is at work; None: nobody is yet."""
    match message:
        case {"event": "started", "implementation": str(name)} if name in job.implementations:
            return
        case {"event": "result", "implementation": str(name)} if name == who:
            return
        case {"event": "ended", "implementation": None | str() as name, "outcome": str(outcome), "reason": str()} if (
            name in (None, who) and outcome in list(Outcome)
        ):
            return
        case {"event": "facts", "facts": dict(facts)} if (
            who is None
            and _counts([facts.get(key) or 0 for key in ("parameters", "trainable", "tokens")])
            and _layers(facts.get("layers", []))
        ):
            return
        case {"event": "mistake", "workload": str(), "reason": str()} if job.kind == "check":
            return
        case {"event": "ready" | "turn"} if job.kind == "turns":
            return
        case {"event": "done"} if _words(message.get("imported", [])):
            return
    raise Garbled(f"{message!r:.80}")


def figures(message: Message, job: Job) -> dict[str, Any]:
    """The figures of a result, in their types; raises Garbled where they are none, or none that there can be."""
    told = {k: v for k, v in message.items() if k not in ("event", "implementation")}
    try:
        found = decode(FOUND[job.kind], told, "result")
    except (DpbenchError, KeyError, RecursionError) as error:
        raise Garbled(str(error)) from None
    if not found.can_be():
        raise Garbled(f"figures that cannot be: {told!r:.80}")
    return {f.name: getattr(found, f.name) for f in fields(found)}


def _counts(values: Iterable[object]) -> bool:
    return all(isinstance(v, int) and 0 <= v < _MOST for v in values)


def _layers(value: object) -> bool:
    """Whether these are names with T, d and p."""
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == 4 and isinstance(row[0], str) and _counts(row[1:]) for row in value
    )


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
