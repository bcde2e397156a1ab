"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and the remedy."""

    name: str
    verdict: Literal["ok", "disturbs", "note"]
    """A note neither disturbs for certain nor is known not to."""
    text: str
    fix: str = ""
    """In one line, a command where one does it."""


def ok(name: str, text: str) -> Finding:
    """Nothing to do."""
    return Finding(name, "ok", text)


def disturbs(name: str, text: str, fix: str) -> Finding:
    """Something to mend."""
    return Finding(name, "disturbs", text, fix)


def note(name: str, text: str, fix: str = "") -> Finding:
    """Something to know."""
    return Finding(name, "note", text, fix)
