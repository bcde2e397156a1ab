"""Published figures, as ``report/published.toml`` holds them: facts with their sources, beside which ours are shown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dpbench.reportpath import find


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed table or chart."""

    id: str
    source: str
    device: str
    """The card, as ``dpbench.cards`` calls it."""
    rows: tuple[Mapping[str, Any], ...]
    """One for each workload: its axes, and by quantity the values of the implementations (a number, or ``oom``)."""
    T: int | None = None
    notes: str = ""
    unit: Mapping[str, str] = field(default_factory=dict)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(find("published.toml").read_text(encoding="utf-8"))


def figures() -> dict[str, Figure]:
    """Every figure by its id."""
    return {given["id"]: Figure(**given | {"rows": tuple(given["rows"])}) for given in _file()["figure"]}


def claims() -> Mapping[str, Any]:
    """Single numbers in the text of the BK paper."""
    found: Mapping[str, Any] = _file()["claims"]
    return found


def leading_terms() -> Mapping[str, int]:
    """The time of an implementation as the BK paper states it, in multiples of BTpd for large T."""
    found: Mapping[str, int] = _file()["time_complexity"]
    return found
