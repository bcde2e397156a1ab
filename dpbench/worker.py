"""What a child does: build the workload, do its job, and tell of each figure as soon as it is there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from dpbench import precision, schedule
from dpbench.batch import Batch
from dpbench.clipping import Clip
from dpbench.contain import keep_freed_memory
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import Losses, prepare
from dpbench.job import Job, Message
from dpbench.meters import Action, Meter, meter_for
from dpbench.outcome import of_exception
from dpbench.parity import EXAMPLES, Oracle, is_private
from dpbench.privatize import refuse_non_finite
from dpbench.records import Workload
from dpbench.step import Training
from dpbench.tensors import bytes_of, marks

Send = Callable[[Message], None]


def work(job: Job, send: Send) -> None:
    """Do ``job``; exceptions of an implementation are told, those of the model are told of all."""
    known = set(sys.modules)
    if job.workload.threads is not None:
        torch.set_num_threads(job.workload.threads)
    try:
        {"check": check, "parity": parity, "memory": memory, "round": timing}[job.kind](job, send)
    except BaseException as error:
        outcome, reason = of_exception(error)
        send({"event": "ended", "implementation": None, "outcome": outcome, "reason": reason})
    send({"event": "done", "imported": sorted(set(sys.modules) - known)})


def check(job: Job, send: Send) -> None:
    """Build every workload once, and report what the user has to mend as a ``mistake``; a refusal is a result."""
    for workload in (job.workload, *job.also):
        try:
            precision.check_precision(workload.precision, precision.check_device(workload.device))
            build(workload, workload.batch)
        except Refused:
            continue
        except DpbenchError as error:
            send({"event": "mistake", "workload": workload.label(), "reason": str(error)})


class Built:
    """A workload with its weights and one batch, on its device and in its precision."""

    def __init__(self, workload: Workload, batch: int) -> None:
        from dpbench.models import build

        self.device = precision.check_device(workload.device)
        precision.check_precision(workload.precision, self.device)
        torch.manual_seed(workload.seed)
        task = build(workload)
        self.facts = {
            "parameters": task.parameters,
            "trainable": task.trainable,
            "tokens": task.tokens,
            "source": task.source,
            "kind": task.kind,
        }
        self.model: nn.Module = task.model.to(self.device)
        self.losses: Losses
        self.batch: Batch
        data = to_device(task.batches(batch, workload.seed), self.device)
        self.model, self.losses, self.batch = precision.apply(workload.precision, self.model, task.losses, data)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Every tensor of it there."""
    from torch.utils import _pytree as pytree

    return pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), batch)


def build(workload: Workload, batch: int) -> Built:
    """The workload, with a batch of that size."""
    return Built(workload, batch)


def clip_of(workload: Workload) -> Clip:
    """How the workload clips."""
    return Clip(max_norm=workload.max_norm, function=workload.clip_function, style=workload.clip_style)


def parity(job: Job, send: Send) -> None:
    """Check each implementation's gradient, all on one small problem."""
    workload = job.workload if job.native else replace(job.workload, precision="fp32")
    built = build(workload, EXAMPLES)
    oracle = Oracle(built.model, built.losses, built.batch, clip_of(job.workload), job.native)
    for name in job.implementations:
        with Reporting(name, send):
            torch.manual_seed(job.workload.seed)
            checked = oracle.check(name)
            send(
                {
                    "event": "result",
                    "implementation": name,
                    "parity": asdict(checked.parity),
                    "coverage": checked.coverage,
                }
            )
        gc.collect()


def memory(job: Job, send: Send) -> None:
    """Take each implementation's peak, after a step that warms it up."""
    built = build(job.workload, job.workload.batch)
    send({"event": "facts", "facts": built.facts})
    for name in job.implementations:
        with Reporting(name, send):
            run = Run(name, built, job.workload)
            run.warm_up()
            figures = run.memory(meter_for(built.device))
            figures["resident"] = float(bytes_of(built.model, built.batch))
            run.close()
            send({"event": "result", "implementation": name, "memory": figures})


def timing(job: Job, send: Send) -> None:
    """Time the implementations interleaved; one that raises ends the round, which is repeated without it."""
    if job.workload.device == "cpu":
        keep_freed_memory()
    built = build(job.workload, job.workload.batch)
    send({"event": "facts", "facts": built.facts})
    meter = meter_for(built.device)
    runs: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    for name in job.implementations:
        with Reporting(name, send) as reporting:
            runs[name], built = ready(name, built, job.workload)
            runs[name].warm_up()
            runs[name].time(meter)
            seconds[name] = meter.seconds()[0]
        if reporting.failed:
            return
    counts = schedule.counts(seconds, job.budget_s)
    samples = interleaved(runs, schedule.blocks(counts, job.seed), meter, send)
    for name, taken in samples.items():
        send({"event": "result", "implementation": name, "seconds": taken})


def ready(name: str, built: Built, workload: Workload) -> tuple[Run, Built]:
    """A run of ``name``, and the model for the next: a new one if this one left something on it."""
    before = marks(built.model)
    run = Run(name, built, workload)
    return (run, built) if marks(built.model) == before else (run, build(workload, workload.batch))


def interleaved(
    runs: dict[str, Run], blocks: list[list[str]], meter: Meter, send: Send
) -> dict[str, list[float]]:
    """Time the runs in that order; the samples of each."""
    order = []
    gc.collect()
    gc.disable()
    try:
        for block in blocks:
            for name in block:
                send({"event": "started", "implementation": name})
                runs[name].time(meter)
                order.append(name)
            gc.collect()
    finally:
        gc.enable()
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for name, taken in zip(order, meter.seconds(), strict=True):
        samples[name].append(taken)
    return samples


class Run:
    """One implementation, prepared on a model and ready to be measured."""

    def __init__(self, name: str, built: Built, workload: Workload) -> None:
        self._built = built
        clip = clip_of(workload)
        self._step = prepare(name, built.model, built.losses, clip)
        self._whole: Callable[[Batch], Any] = self._step
        if workload.step == "train":
            self._whole = Training(
                built.model,
                self._step,
                clip,
                workload.optimizer,
                private=is_private(name),
                seed=workload.seed,
            )

    def warm_up(self) -> None:
        """One step, whose result has to be finite."""
        refuse_non_finite(self._whole(self._built.batch))

    def time(self, meter: Meter) -> None:
        """One step on the clock, the gradients of the one before cleared."""
        self._clear()
        meter.time(lambda: self._whole(self._built.batch))

    def memory(self, meter: Meter) -> dict[str, float]:
        """The memory of one step, above parameters, buffers and batch."""

        def step() -> None:
            self._clear()
            self._whole(self._built.batch)

        self._clear()
        action: Action = step
        return meter.memory(action)

    def close(self) -> None:
        """Leave the model as it was."""
        self._step.close()
        self._clear()

    def _clear(self) -> None:
        self._built.model.zero_grad(set_to_none=True)


class Reporting:
    """Says who is at work, and what became of it if it raises; the exception ends there."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send, self.failed = name, send, False

    def __enter__(self) -> Reporting:
        self._send({"event": "started", "implementation": self._name})
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self.failed = True
        outcome, reason = of_exception(error)
        self._send({"event": "ended", "implementation": self._name, "outcome": outcome, "reason": reason})
        # The traceback's frames would hold the tensors of the step that failed.
        error.__traceback__ = None
        return True
