"""Asking children of the project's own for figures, as a run does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpbench.child import Launcher
from dpbench.job import Job
from dpbench.supervise import Ended, Finding, Patience, supervise

TIMEOUT_S = 60.0


def figures(launcher: Launcher, job: Job) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """What was found of each implementation, or why nothing was; whoever a child did not come to gets another."""
    found: dict[str, dict[str, Any]] = {}
    ended: dict[str, str] = {}
    while left := [name for name in job.implementations if name not in found and name not in ended]:
        for seen in supervise(launcher, replace(job, implementations=tuple(left)), Patience(TIMEOUT_S)):
            match seen:
                case Finding(name, values):
                    found[name] = values
                case Ended(name, outcome, reason):
                    ended |= {n: f"{outcome}: {reason}" for n in (left if name is None else [name]) if n not in found}
        if not (found.keys() | ended.keys()) & set(left):
            ended |= dict.fromkeys(left, "its process said nothing of it")
    return found, ended


def why(ended: Mapping[str, str]) -> str:
    """The reasons in one line, each once."""
    whose: dict[str, list[str]] = {}
    for name, reason in ended.items():
        whose.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in whose.items())
