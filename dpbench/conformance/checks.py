"""All checks by name: the kit's, and those of a user's own model."""

from __future__ import annotations

import copy
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
from dpbench.models.task import Batches, Task
from dpbench.parity import refuse_random
from dpbench.records import Workload

SUBJECTS = ("linear/three-axes", "convolution/groups", "embedding/sequence")
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

    @cache
    def task() -> Task:
        return build(workload)

    def subject(*calls: Callable[[Batches], Call]) -> Subject:
        def made() -> Problem:
            # A copy, because a user's build need not give the same weights at every time.
            model, losses = copy.deepcopy(task().model), task().losses
            quiet = without_dropout(model, losses)
            made = tuple(call(task().batches) for call in calls)
            refuse_random(model, quiet, made[0].batch)
            return Problem(model, quiet, made)

        return Subject(made)

    found = [
        Check(name, reason, "the loop over the examples", partial(judged, subject(*calls), name))
        for name, reason, calls in OWN
    ]
    whole = {workload.model: subject(some(4))}
    found += [Check(p.name, p.reason, p.source, partial(p.judge, whole)) for p in PROPERTIES + STEPS]
    return {check.name: check for check in found}


def some(count: int, seed: int = 0, **marks: list[int] | list[bool]) -> Callable[[Batches], Call]:
    """A call with so many examples; ``marks`` are its unit and mask."""
    tensors = {name: torch.tensor(values) for name, values in marks.items()}
    return lambda batches: Call(batches(count, seed), **tensors)


OWN = (
    ("gradient/batch", "The same batch twice: nothing is stale, nothing is added twice.", [some(3), some(3)]),
    ("gradient/sizes", "Other sizes one after the other: one, four, none.", [some(1), some(4, 1), some(0)]),
    ("gradient/mask", "Rows that only pad a Poisson batch add nothing.", [some(3, mask=[True, False, True])]),
    ("gradient/unit", "Examples of one user are summed before clipping.", [some(4, unit=[0, 1, 1, 2])]),
)
"""Names, reasons and calls of the gradient's checks on a user's own model."""


def checks(workload: Workload) -> dict[str, Check]:
    """Of a workload, or of the kit."""
    return kit() if workload.model == KIT else of_model(replace(workload, batch=1))
