"""What each implementation costs on a workload: counted by its modules, and traced through its real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dpbench.built import clip_of
from dpbench.cards import Card
from dpbench.complexity import modules, space
from dpbench.complexity.faked import Faked, ReadsValues
from dpbench.complexity.layers import layers
from dpbench.complexity.meter import traced
from dpbench.complexity.prediction import Prediction
from dpbench.complexity.real import Real
from dpbench.complexity.roofline import seconds
from dpbench.complexity.trace import Trace, extrapolated
from dpbench.errors import Refused, unknown
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.registry import load
from dpbench.step import Training, summed

ON = {"trace": "tensors of shapes without memory", "real": "real tensors of small batches on this CPU"}
"""What an implementation can be traced on."""

SMALL = 2, 3
"""The batches of real tensors that larger ones are extrapolated from; one example alone may take another path."""


def predict(
    workload: Workload, implementations: Sequence[str], card: Card | None = None, on: str = "trace"
) -> Iterator[Prediction]:
    """One prediction for each implementation, as they come.

    ``card``: what to give times for. ``on``: ``trace``, or ``real`` (small batches of real tensors), which is taken
    for an implementation that reads values, too.

    Raises:
        DpbenchError: for an unknown model, implementation or option, or a precision that the card lacks.
    """
    if on not in ON:
        raise unknown("way of tracing", on, ON)
    if card is not None:
        card.peak(workload.precision)
    whole = Faked(workload)
    uses = layers(whole)
    for name in implementations:
        declared = load(name).MODULES
        readable = modules.is_readable(declared)
        found = Prediction(
            name,
            workload,
            whole.parameters,
            whole.trainable,
            declared,
            modules.of_network(uses, declared) if readable else None,
            modules.of_kernels(uses, declared) if readable else Counter(),
            modules.of_formula(uses, declared) if readable else Counter(),
            space.of_network(uses, declared, workload.precision) if readable else None,
            None,
            on,
        )
        try:
            trace, how = _either(name, workload, whole, on)
        except Refused as error:
            yield replace(found, reason=str(error))
            continue
        time = None if card is None else seconds(trace, card, workload.precision)
        yield replace(found, trace=trace, on=how, seconds=time)


def _either(name: str, workload: Workload, whole: Faked, on: str) -> tuple[Trace, str]:
    if on == "trace":
        try:
            return trace_of(name, workload, whole), on
        except ReadsValues:
            pass
    return _on_real(name, workload, whole.parameters), "real"


def one_by_one(name: str) -> bool:
    """Whether it goes through the examples of a batch one by one."""
    return load(name).MODULES.startswith("B x")


def trace_of(name: str, workload: Workload, faked: Faked | None = None) -> Trace:
    """The trace of one step of ``name``; ``faked``: the workload, where it is there already.

    Of a logical batch it is that of the first two physical batches: the second finds a sum, as all that follow do.

    Raises:
        Refused: as the implementation does; ReadsValues where there is no trace without values.
    """
    if not one_by_one(name):
        return _traced(name, faked or Faked(workload))
    # One and two of them tell what each costs, and memory does not grow.
    one, two = (_traced(name, Faked(replace(workload, batch=n))) for n in (1, 2))
    most = one if workload.physical == 1 else two
    return replace(extrapolated(one, two, workload.physical), peak=most.peak, peak_in=most.peak_in, alive=most.alive)


def _on_real(name: str, workload: Workload, parameters: int) -> Trace:
    """The trace of small batches of real tensors, extrapolated along a line."""
    small = replace(workload, device="cpu", precision="fp32" if workload.precision == "tf32" else workload.precision)
    if workload.physical in (1, *SMALL):
        return _traced(name, Real(small, parameters))
    first, second = (_traced(name, Real(replace(small, batch=n), parameters)) for n in SMALL)
    return extrapolated(first, second, workload.physical, start=SMALL[0])


def _traced(name: str, task: Faked | Real) -> Trace:
    workload = task.workload
    with task.context(name):
        step = prepare(name, task.model, task.losses, clip_of(workload))
        whole = summed(task.model, step, workload, most=2)
        training = None if workload.step == "gradient" else Training(task.model, whole, workload.optimizer)
        try:
            # The first step makes plan and optimizer state; what is traced is one like all that follow.
            (training or whole)(task.batch)
            task.model.zero_grad(set_to_none=True)
            resident = [*task.tensors, *(training.state if training else [])]
            return traced(partial(training or whole, task.batch), resident, task.model)
        finally:
            step.close()
            task.model.zero_grad(set_to_none=True)
