"""What the machine was doing while something was timed. No torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The machine during one round; None: the system does not tell."""

    throttled: tuple[str, ...] = ()
    """Why a clock was held down, in words."""
