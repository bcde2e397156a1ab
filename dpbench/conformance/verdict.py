"""What is found of one implementation on one check."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import isfinite

from dpbench.decoding import decode
from dpbench.records import plain

BESIDE = ("fp32", "bf16", "amp-bf16")
"""Precisions whose errors are shown beside the verdict."""


class Ruling(StrEnum):
    """From the best to the worst: who is silently wrong does more harm than who crashes."""

    RIGHT = "right"
    REFUSES = "refuses"
    """It says that it cannot, in words."""
    FREEZES = "freezes"
    """Parameters that were asked to be trained get no gradient; what the others get is right."""
    CRASHES = "crashes"
    WRONG = "wrong"

    def worse_than(self, other: Ruling) -> bool:
        """Whether it comes after ``other``."""
        order = list(Ruling)
        return order.index(self) > order.index(other)


@dataclass(frozen=True, slots=True)
class Native:
    """The error in another precision than the verdict's, beside the error of the loop over the examples there."""

    error: float | None
    """None: it raised there."""
    loop: float
    epsilon: float
    """The spacing of the numbers there."""
    message: str = ""

    @property
    def times_loop(self) -> float | None:
        """How many times the loop's own error, or one rounding; None where one of them is no number to compare."""
        if self.error is None or not isfinite(self.loop):
            return None
        return self.error / max(self.loop, self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came out."""

    implementation: str
    check: str
    ruling: Ruling
    error: float | None = None
    """The largest relative error over the norms and every parameter's clipped sum, over all calls."""
    worst: str = ""
    """What differed most: ``norms`` or a parameter's name."""
    message: str = ""
    """Of a refusal or a crash."""
    frozen: tuple[str, ...] = ()
    """Parameters that got no gradient."""
    asked: int = 0
    """How many parameters were asked to be trained."""
    figure: str = ""
    """What a property gives: ``largest move 0.98 R``."""
    tolerance: float = 0.0
    precision: str = "float64"
    """Of the verdict."""
    native: dict[str, Native] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(plain(asdict(self)), separators=(",", ":"), allow_nan=False)


def from_plain(value: object) -> Verdict:
    """What JSON gives of a verdict.

    Raises:
        DpbenchError: it is none.
    """
    verdict: Verdict = decode(Verdict, value, "verdict")
    return verdict
