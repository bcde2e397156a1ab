"""What each implementation costs on a workload: counted by its modules, and traced through its real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpbench.cards import Card
from dpbench.complexity import modules, space
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.maxbatch import MOST, largest
from dpbench.complexity.modules import Layer
from dpbench.complexity.prediction import Prediction
from dpbench.complexity.roofline import seconds
from dpbench.complexity.tracing import ON, either
from dpbench.errors import DpbenchError, unknown
from dpbench.records import Workload
from dpbench.registry import load


def predict(
    workload: Workload, implementations: Sequence[str], card: Card | None = None, on: str = "trace"
) -> Iterator[Prediction]:
    """One prediction of one physical batch for each implementation, as they come.

    ``card``: what to give times for; ``batch = "max"`` is the largest that fits into it, of each implementation, and
    is no larger than a logical batch.
    ``on``: ``trace``, or ``real`` (small batches of real tensors), which is taken for an implementation that reads
    values, too.

    Raises:
        DpbenchError: for an unknown model, implementation or option, or a precision that the card lacks.
    """
    if on not in ON:
        raise unknown("way of tracing", on, ON)
    if card is not None:
        card.peak(workload.precision)
    limit = workload.logical_batch or MOST
    workload = replace(workload, logical_batch=None)
    if workload.batch == "max":
        if card is None:
            raise DpbenchError("the largest batch is that of a card: give one with --card (see: dpbench list cards)")
        task = Faked(replace(workload, batch=1))
        for name in implementations:
            yield _at_largest(name, task, card, limit, on)
        return
    task = Faked(workload)
    uses = layers(task)
    for name in implementations:
        yield _one(name, task, uses, card, on)


def _at_largest(name: str, task: Faked, card: Card, limit: int, on: str) -> Prediction:
    task.resize(1)
    try:
        most = largest(name, task.workload, card.capacity, limit, task)
    except DpbenchError as error:
        return replace(_counted(name, task, layers(task), on), reason=str(error))
    task.resize(max(most.batch, 1))
    if not most.batch:
        reason = f"one example needs {most.need} bytes, {card.name} has {card.capacity} for tensors"
        return replace(_counted(name, task, layers(task), on), reason=reason)
    return _one(name, task, layers(task), card, on)


def _one(name: str, task: Faked, uses: Sequence[Layer], card: Card | None, on: str) -> Prediction:
    found = _counted(name, task, uses, on)
    try:
        trace, how = either(name, task.workload, task, on)
    except DpbenchError as error:
        return replace(found, reason=str(error))
    time = None if card is None else seconds(trace, card, task.workload.precision)
    return replace(found, trace=trace, on=how, seconds=time)


def _counted(name: str, task: Faked, uses: Sequence[Layer], on: str) -> Prediction:
    """What formulas say."""
    declared = load(name).MODULES
    readable = modules.is_readable(declared)
    return Prediction(
        implementation=name,
        workload=task.workload,
        parameters=task.parameters,
        trainable=task.trainable,
        modules=declared,
        analytic=modules.of_network(uses, declared) if readable else None,
        kernels=modules.of_kernels(uses, declared) if readable else Counter(),
        formula=modules.of_formula(uses, declared) if readable else Counter(),
        space=space.of_network(uses, declared, task.workload.precision) if readable else None,
        trace=None,
        on=on,
    )
