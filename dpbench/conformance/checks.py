"""All checks by name: the kit's, and those of a user's own model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec

import torch

from dpbench.cases import CASES, Call, Problem
from dpbench.conformance.judge import judge, judged
from dpbench.conformance.properties import PROPERTIES
from dpbench.conformance.stepping import STEPS
from dpbench.conformance.subject import Subject
from dpbench.conformance.verdict import Verdict
from dpbench.dropout import without_dropout
from dpbench.models import build
from dpbench.records import Workload

SUBJECTS = ("linear/three-axes",)
"""Cases on which the kit's properties are looked at."""
KIT = "kit"
"""The model of a workload that stands for the kit's own problems."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something to find out of an implementation."""

    name: str
    reason: str
    source: str
    judge: Callable[[str], Verdict]
    """From an implementation's name."""
    needs: str = ""

    @property
    def missing(self) -> bool:
        """Whether the package that it needs is not installed."""
        return bool(self.needs) and find_spec(self.needs) is None


@cache
def kit() -> dict[str, Check]:
    """The checks on the small problems of :mod:`dpbench.cases`."""
    subjects = {name: Subject(CASES[name].build) for name in SUBJECTS}
    found = [Check(c.name, c.reason, c.source, partial(judge, c), c.needs) for c in CASES.values()]
    found += [Check(p.name, p.reason, p.source, partial(p.judge, subjects)) for p in PROPERTIES + STEPS]
    return {check.name: check for check in found}


def of_model(workload: Workload) -> dict[str, Check]:
    """The checks on a model of the user's, at the gradient and at the whole step; dropout is switched off."""

    def problem(*calls: Callable[[Callable[[int, int], object]], Call]) -> Subject:
        def made() -> Problem:
            task = build(workload)
            losses = without_dropout(task.model, task.losses)
            return Problem(task.model, losses, tuple(call(task.batches) for call in calls))

        return Subject(made)

    def some(count: int, seed: int = 0, **marks: list[int] | list[bool]) -> Callable[..., Call]:
        tensors = {name: torch.tensor(values) for name, values in marks.items()}
        return lambda batches: Call(batches(count, seed), **tensors)

    calls = {
        "gradient/batch": ("Three examples at once, twice: nothing stale, nothing added twice.", [some(3), some(3)]),
        "gradient/sizes": (
            "Batches of other sizes one after the other: one, four, none.",
            [some(1), some(4, 1), some(0)],
        ),
        "gradient/mask": (
            "Rows that only pad a Poisson batch contribute nothing.",
            [some(3, mask=[True, False, True])],
        ),
        "gradient/unit": ("Examples of one user are summed before clipping.", [some(4, unit=[0, 1, 1, 2])]),
    }
    found = [
        Check(name, reason, "the loop over the examples", partial(judged, problem(*made), name))
        for name, (reason, made) in calls.items()
    ]
    whole = {workload.model: problem(some(4))}
    found += [Check(p.name, p.reason, p.source, partial(p.judge, whole)) for p in PROPERTIES + STEPS]
    return {check.name: check for check in found}


def checks(workload: Workload) -> dict[str, Check]:
    """Of a workload, or of the kit."""
    return kit() if workload.model == KIT else of_model(replace(workload, batch=1))
