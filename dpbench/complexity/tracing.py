"""Traces of one implementation on one workload: without memory, or on small batches of real tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dpbench.built import clip_of
from dpbench.complexity.faked import Faked, ReadsValues
from dpbench.complexity.meter import traced
from dpbench.complexity.real import Real
from dpbench.complexity.trace import Trace, extrapolated
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.registry import load
from dpbench.step import Training, summed

ON = {"trace": "tensors of shapes without memory", "real": "real tensors of small batches on this CPU"}
"""What an implementation can be traced on."""

SMALL = 7, 8
"""The batches of real tensors that larger ones are extrapolated from; a line through
fewer would miss that activations make the peak of larger ones, and through these it still may."""


def either(name: str, workload: Workload, faked: Faked, on: str) -> tuple[Trace, str]:
    """The trace as it is asked for, or on real tensors where there is none without values; and which of both."""
    if on == "trace":
        try:
            return trace_of(name, workload, faked), on
        except ReadsValues:
            pass
    return _on_real(name, workload, faked.parameters), "real"


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
    return replace(extrapolated(one, two, workload.physical), peaks=most.peaks, alive=most.alive)


def _on_real(name: str, workload: Workload, parameters: int) -> Trace:
    """The trace of small batches of real tensors, extrapolated along a line."""
    small = replace(workload, device="cpu", precision="fp32" if workload.precision == "tf32" else workload.precision)
    if workload.physical <= max(SMALL):
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
