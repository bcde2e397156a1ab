"""What a check is, and what it answers: what was expected, what was got, and whether that is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What came out of one part of a check."""

    PASSED = "passed"
    DIFFERS = "differs"
    COULD_NOT = "could not"
    NOT_DONE = "not done"
    """There was no time left for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of one part of a check."""

    part: str
    expected: str
    got: str
    verdict: Verdict
    figures: dict[str, Any] = field(default_factory=dict)
    """All that was measured, as plain values."""


Say = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class Check:
    """One question, asked in a process of its own."""

    name: str
    parts: Sequence[str]
    """What it has an answer for, in its order: what is missing from them is said."""
    limit_s: float
    run: Callable[[Say], None]


def answer(part: str, expected: str, got: str, right: bool, **figures: Any) -> Answer:
    """It is as expected, or differs."""
    return Answer(
        part=part, expected=expected, got=got, verdict=Verdict.PASSED if right else Verdict.DIFFERS, figures=figures
    )


def could_not(part: str, expected: str, why: str, **figures: Any) -> Answer:
    """It could not be found out."""
    return Answer(part=part, expected=expected, got=why, verdict=Verdict.COULD_NOT, figures=figures)
