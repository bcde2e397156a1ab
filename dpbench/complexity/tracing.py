"""Traces of one implementation on one workload: without memory, or on small batches of real tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dpbench.built import clip_of
from dpbench.complexity.faked import Faked, ReadsValues
from dpbench.complexity.meter import traced
from dpbench.complexity.modules import goes_one_by_one
from dpbench.complexity.real import Real
from dpbench.complexity.trace import Trace, extrapolated
from dpbench.heard import MORE
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.registry import load
from dpbench.step import Training, Whole, summed

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
    return goes_one_by_one(load(name).MODULES)


class Tracer:
    """One implementation, prepared once on a workload and traced at any batch size; use as a context."""

    def __init__(self, name: str, task: Faked | Real) -> None:
        self._name, self._task = name, task
        self._batch = task.workload.physical
        with task.context(name):
            self._step = prepare(name, task.model, task.losses, clip_of(task.workload))
        self._whole: Whole = self._step
        self._training: Training | None = None
        if task.workload.step == "train":
            self._training = Training(task.model, lambda batch: self._whole(batch), task.workload.optimizer)
        self._warm: set[int] = set()
        self._small: dict[int, Trace] = {}

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *error: object) -> None:
        self._step.close()
        self._task.model.zero_grad(set_to_none=True)
        self._task.resize(self._batch)

    def at(self, batch: int) -> Trace:
        """The trace of one step.

        Of a logical batch it is that of the first two physical batches: the second finds a sum, as all that follow do.
        Where examples are taken one by one, one and two of them tell what each costs, and memory does not grow.

        Raises:
            Refused: as the implementation does; ReadsValues where there is no trace without values.
        """
        if not one_by_one(self._name) or isinstance(self._task, Real):
            return self._traced(batch)
        for few in (1, 2):
            if few not in self._small:
                self._small[few] = self._traced(few)
        one, two = self._small[1], self._small[2]
        most = one if batch == 1 else two
        return replace(extrapolated(one, two, batch), peaks=most.peaks, alive=most.alive)

    def _traced(self, batch: int) -> Trace:
        task = self._task
        task.resize(batch)
        with task.context(self._name):
            self._whole = summed(task.model, self._step, task.workload, most=2)
            step = partial(self._training or self._whole, task.batch)
            if min(batch, MORE) not in self._warm or task.workload.logical_batch:
                # The first step makes plan and optimizer state; what is traced is one like all that follow.
                step()
                self._warm.add(min(batch, MORE))
            task.model.zero_grad(set_to_none=True)
            resident = [*task.tensors, *(self._training.state if self._training else [])]
            found = traced(step, resident, task.model)
            task.model.zero_grad(set_to_none=True)
            return found


def trace_of(name: str, workload: Workload, faked: Faked | None = None) -> Trace:
    """The trace of one step of ``name``; ``faked``: the workload, where it is there already. See :class:`Tracer`."""
    with Tracer(name, faked or Faked(workload)) as tracer:
        return tracer.at(workload.physical)


def _on_real(name: str, workload: Workload, parameters: int) -> Trace:
    """The trace of small batches of real tensors, extrapolated along a line."""
    small = replace(workload, device="cpu", precision="fp32" if workload.precision == "tf32" else workload.precision)
    if workload.physical <= max(SMALL):
        return _of_real(name, small, parameters)
    first, second = (_of_real(name, replace(small, batch=n), parameters) for n in SMALL)
    return extrapolated(first, second, workload.physical, start=SMALL[0])


def _of_real(name: str, workload: Workload, parameters: int) -> Trace:
    with Tracer(name, Real(workload, parameters)) as tracer:
        return tracer.at(workload.physical)
