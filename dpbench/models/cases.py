"""The cases of the conformance kit as models: ``case:sharing/tied-head``.

Model and losses are the case's, and so are its examples, again and again from the first for a larger batch. What else
a case asks of a step (clipping, units, masks, several calls) is for ``dpbench verify``: here the workload says.
"""

from __future__ import annotations

from importlib.util import find_spec

from dpbench.batch import size
from dpbench.cases import CASES
from dpbench.errors import DpbenchError, MissingExtra, Refused, unknown
from dpbench.models.batches import repeated
from dpbench.models.spec import Spec
from dpbench.models.task import Task
from dpbench.records import Workload


def build(spec: Spec, workload: Workload) -> Task:
    """The case of that name.

    Raises:
        DpbenchError: there is none.
        MissingExtra: it needs a package that is not installed.
        Refused: no example has a gradient of its own in it, or it has no examples.
    """
    name = spec.name
    if name not in CASES:
        raise unknown("case", name, CASES, "See: dpbench list cases")
    if spec.options:
        given = ", ".join(f"{option}={value}" for option, value in spec.options.items())
        raise DpbenchError(f"case:{name} is given {given}; a case has no options, leave the brackets out")
    spec.refuse(workload, "seq_len", "image_size", "layers", "classes", "attention", "loss_chunk")
    case = CASES[name]
    if case.refused:
        raise Refused(f"case:{name} has no right answer: {case.refused}. See: dpbench verify --case {name}")
    if case.needs and find_spec(case.needs) is None:
        raise MissingExtra(case.needs, "models")
    problem = case.build()
    batch = next((call.batch for call in problem.calls if size(call.batch)), None)
    if batch is None:
        raise Refused(f"case:{name} is about an empty batch and has no examples. See: dpbench verify --case {name}")
    return Task(problem.model, problem.losses, repeated(batch), "vector", f"case {name}: {case.reason}")
