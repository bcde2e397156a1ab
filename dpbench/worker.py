"""What a child does: build the workload, do its job, and tell of each figure as soon as it is there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

import torch

from dpbench.built import Built, clip_of
from dpbench.errors import DpbenchError, Refused
from dpbench.job import Job, Send, Talk
from dpbench.meters import meter_for
from dpbench.outcome import of_exception
from dpbench.parameters import trainable
from dpbench.parity import EXAMPLES, Oracle
from dpbench.prepared import Prepared
from dpbench.records import Traced, plain
from dpbench.registry import source_hash
from dpbench.telling import Telling
from dpbench.timing import timing, turns


def work(job: Job, send: Talk) -> None:
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


def sources(job: Job, send: Send) -> None:
    """Tell which source each implementation is."""
    for name in job.implementations:
        with Telling(name, send):
            send({"event": "result", "implementation": name, "source": source_hash(name)})


def fit(job: Job, send: Send) -> None:
    """Find each implementation's largest batch by tracing: nothing is computed."""
    from dpbench.complexity.maxbatch import capacity_of, to_run

    capacity = job.capacity or capacity_of(job.workload.device)
    for name in job.implementations:
        with Telling(name, send):
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
        with Telling(name, send) as telling:
            torch.manual_seed(job.workload.seed)
            checked = oracle.check(name)
            found = {"parity": asdict(checked.parity), "coverage": asdict(checked.coverage)}
            send({"event": "result", "implementation": name, **found})
        if telling.broken:
            return
        gc.collect()


def verify(job: Job, send: Send) -> None:
    """Find each implementation's verdict on one conformance check."""
    from dpbench.conformance.checks import checks

    check = checks(job.workload)[job.check]
    for name in job.implementations:
        with Telling(name, send):
            send({"event": "result", "implementation": name, "verdict": plain(asdict(check.judge(name)))})


def trace(job: Job, send: Send) -> None:
    """Count what one step of each implementation costs; nothing is computed."""
    from dpbench.complexity.faked import Faked
    from dpbench.complexity.here import roofline
    from dpbench.complexity.layers import trained
    from dpbench.complexity.tracing import either

    faked = Faked(job.workload)
    send({"event": "facts", "facts": {**faked.facts, "layers": trained(faked)}})
    for name in job.implementations:
        with Telling(name, send):
            found, how = either(name, job.workload, faked, "trace")
            modules = dict(found.flops)
            if attention := sum(found.others.values()):
                modules["attention"] = attention
            traced = Traced(
                flops=found.total,
                bytes=found.traffic,
                peak=found.peak,
                modules=modules,
                on=how,
                roofline=roofline(found, job.workload),
            )
            send({"event": "result", "implementation": name, "traced": asdict(traced)})


def memory(job: Job, send: Send) -> None:
    """Take each implementation's peak, after a step that warms it up."""
    built = Built(job.workload, job.workload.physical)
    send({"event": "facts", "facts": built.facts})
    if job.capacity is not None and built.device.type == "cuda":
        total = torch.cuda.get_device_properties(built.device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, job.capacity / total), built.device)
    for name in job.implementations:
        with Telling(name, send) as telling:
            prepared = Prepared(name, built, job.workload)
            prepared.warm_up()
            figures = prepared.memory(meter_for(built.device))
            resident = float(prepared.resident)
            prepared.close()
            send({"event": "result", "implementation": name, "memory": {**figures, "resident": resident}})
        if telling.broken:
            return


JOBS: dict[str, Callable[[Job, Talk], None]] = {
    "check": check,
    "sources": sources,
    "fit": fit,
    "parity": parity,
    "trace": trace,
    "memory": memory,
    "round": timing,
    "turns": turns,
    "verify": verify,
}
