"""What a child does: build the workload, do its job, and tell of each figure as soon as it is there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch

from dpbench import contain, schedule
from dpbench.built import Built, clip_of
from dpbench.errors import DpbenchError, Refused
from dpbench.faults import of_machine, ran_out_of_memory
from dpbench.job import Job, Message
from dpbench.meters import Meter, meter_for
from dpbench.outcome import of_exception
from dpbench.parameters import trainable
from dpbench.parity import EXAMPLES, Oracle
from dpbench.prepared import Prepared
from dpbench.records import plain
from dpbench.tensors import marks

Send = Callable[[Message], None]


def work(job: Job, send: Send) -> None:
    """Do ``job``; what an implementation raises is told of it, what the model raises of all of them."""
    known = set(sys.modules)
    if job.workload.threads is not None:
        torch.set_num_threads(job.workload.threads)
    try:
        JOBS[job.kind](job, send)
    except Exception as error:
        outcome, reason = of_exception(error)
        send({"event": "ended", "implementation": None, "outcome": outcome, "reason": reason})
    send({"event": "done", "imported": sorted(set(sys.modules) - known)})


def check(job: Job, send: Send) -> None:
    """Build every workload once, and tell as a ``mistake`` what the user has to mend.

    A refusal is a result, and what breaks here will break again where it is measured.
    """
    for workload in (job.workload, *job.also):
        try:
            trainable(Built(workload, workload.physical).model)
        except Refused:
            continue
        except DpbenchError as error:
            send({"event": "mistake", "workload": workload.label(), "reason": str(error)})
        except Exception:
            continue


def fit(job: Job, send: Send) -> None:
    """Find each implementation's largest batch by tracing: nothing is computed."""
    from dpbench.complexity.maxbatch import capacity_of, to_run

    capacity = job.capacity or capacity_of(job.workload.device)
    for name in job.implementations:
        with Reporting(name, send):
            found = to_run(name, job.workload, capacity)
            figures = {"batch": found.batch, "need": found.need, "capacity": capacity}
            send({"event": "result", "implementation": name, **figures})


def parity(job: Job, send: Send) -> None:
    """Check each implementation's gradient, all on one small problem."""
    workload = job.workload if job.native else replace(job.workload, precision="fp32")
    native = workload.precision if job.native else None
    built = Built(workload, EXAMPLES)
    send({"event": "facts", "facts": built.facts})
    oracle = Oracle(built.model, built.losses, built.batch, clip_of(job.workload), native)
    for name in job.implementations:
        with Reporting(name, send) as reporting:
            torch.manual_seed(job.workload.seed)
            checked = oracle.check(name)
            found = {"parity": asdict(checked.parity), "coverage": asdict(checked.coverage)}
            send({"event": "result", "implementation": name, **found})
        if reporting.broken:
            return
        gc.collect()


def verify(job: Job, send: Send) -> None:
    """Find each implementation's verdict on one conformance check."""
    from dpbench.conformance.checks import checks

    check = checks(job.workload)[job.check]
    for name in job.implementations:
        with Reporting(name, send):
            send({"event": "result", "implementation": name, "verdict": plain(asdict(check.judge(name)))})


def memory(job: Job, send: Send) -> None:
    """Take each implementation's peak, after a step that warms it up."""
    built = Built(job.workload, job.workload.physical)
    send({"event": "facts", "facts": built.facts})
    if job.capacity is not None and built.device.type == "cuda":
        total = torch.cuda.get_device_properties(built.device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, job.capacity / total), built.device)
    for name in job.implementations:
        with Reporting(name, send) as reporting:
            prepared = Prepared(name, built, job.workload)
            prepared.warm_up()
            figures = prepared.memory(meter_for(built.device))
            resident = float(prepared.resident)
            prepared.close()
            send({"event": "result", "implementation": name, "memory": {**figures, "resident": resident}})
        if reporting.broken:
            return


def timing(job: Job, send: Send) -> None:
    """Time the implementations interleaved; one that raises ends the round, which is repeated without it."""
    if job.workload.device == "cpu":
        contain.keep_freed_memory()
    built = Built(job.workload, job.workload.physical)
    send({"event": "facts", "facts": built.facts})
    meter = meter_for(built.device)
    steps: dict[str, Prepared] = {}
    seconds: dict[str, float] = {}
    for name in job.implementations:
        with Reporting(name, send) as reporting:
            steps[name], built = ready(name, built, job)
            steps[name].warm_up()
            steps[name].time(meter)
            seconds[name] = meter.seconds()[0]
        if reporting.failed:
            return
    blocks = schedule.blocks(schedule.counts(seconds, job.budget_s), job.seed)
    for name, taken in interleaved(steps, blocks, meter, send).items():
        send({"event": "result", "implementation": name, "seconds": taken})


def ready(name: str, built: Built, job: Job) -> tuple[Prepared, Built]:
    """``name`` prepared, and what to prepare the next on: a new model if this one left marks on its own."""
    before = marks(built.model)
    prepared = Prepared(name, built, job.workload)
    if marks(built.model) == before:
        return prepared, built
    return prepared, Built(job.workload, job.workload.physical)


def interleaved(
    steps: dict[str, Prepared], blocks: list[list[str]], meter: Meter, send: Send
) -> dict[str, list[float]]:
    """Time the steps in that order; the samples of each."""
    order = []
    gc.collect()
    gc.disable()
    try:
        for block in blocks:
            for name in block:
                with Reporting(name, send) as reporting:
                    steps[name].time(meter)
                if reporting.failed:
                    return {}
                order.append(name)
            gc.collect()
    finally:
        gc.enable()
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for name, taken in zip(order, meter.seconds(), strict=True):
        samples[name].append(taken)
    return samples


JOBS: dict[str, Callable[[Job, Send], None]] = {
    "check": check,
    "fit": fit,
    "parity": parity,
    "memory": memory,
    "round": timing,
    "verify": verify,
}


class Reporting:
    """Says who is at work, and what became of it if it raises; the exception ends there."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send, self.failed = name, send, False
        self.broken = False
        """Whether the device is of no use any more: the others are not to be blamed, and go on in another process."""

    def __enter__(self) -> Reporting:
        self._send({"event": "started", "implementation": self._name})
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failed = True
        self.broken = of_machine(error) and not ran_out_of_memory(error)
        outcome, reason = of_exception(error)
        self._send({"event": "ended", "implementation": self._name, "outcome": outcome, "reason": reason})
        return True
