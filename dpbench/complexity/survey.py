"""Many implementations and workloads traced at once, on all cores: a line for each."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context

from dpbench.complexity.faked import Faked
from dpbench.complexity.line import Line
from dpbench.complexity.maxbatch import STARTS
from dpbench.complexity.tracing import Tracer
from dpbench.errors import DpbenchError
from dpbench.records import Workload


@dataclass(frozen=True, slots=True)
class Task:
    """Something to look into: the first of these implementations that does not refuse the workload."""

    label: str
    workload: Workload
    implementations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a task; ``line`` is None where all refuse, for ``reason``."""

    task: Task
    implementation: str
    line: Line | None
    gradient: int = 0
    """Bytes of one gradient of all trained parameters."""
    reason: str = ""


def survey(tasks: Sequence[Task], processes: int | None = None) -> Iterator[Found]:
    """What comes of each task, as it comes."""
    count = min(processes or os.cpu_count() or 1, len(tasks))
    if count <= 1:
        yield from map(look_into, tasks)
        return
    # Not forked: a process that holds threads of torch may not be.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=quiet) as pool:
        waiting = [pool.submit(look_into, task) for task in tasks]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def quiet() -> None:
    """Libraries warn once in every process; what they warn of is said in the main one."""
    warnings.simplefilter("ignore")


@lru_cache(maxsize=1)
def _faked(workload: Workload) -> Faked:
    """Building takes as long as tracing; a process looks into one workload after the other."""
    return Faked(workload)


def look_into(task: Task) -> Found:
    """Trace it at two batches; whatever a model or an implementation raises is a reason."""
    reasons = []
    for name in task.implementations:
        try:
            faked = _faked(task.workload)
            with Tracer(name, faked) as tracer:
                line = Line(tracer.at(STARTS[0]), tracer.at(STARTS[1]), STARTS[0])
        except DpbenchError as error:
            reasons.append(str(error))
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}".splitlines()[0])
        else:
            item = 2 if task.workload.precision == "bf16" else 4
            return Found(task, name, line, item * faked.trainable)
    return Found(task, task.implementations[0], None, reason=reasons[0])
