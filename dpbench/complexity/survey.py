"""Many implementations and workloads traced at once, on all cores: a line for each."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from dpbench.complexity.faked import Faked
from dpbench.complexity.line import Line
from dpbench.complexity.tracing import Tracer
from dpbench.contain import cores
from dpbench.errors import DpbenchError
from dpbench.records import Workload

T = TypeVar("T")
R = TypeVar("R")

FEW = 8
"""Examples of a line's first trace."""
MOST = 4096
"""The largest physical batch that is looked at where memory sets no limit."""
END = 512
"""The largest batch at which a line ends: some operators are traced example by example under vmap."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something to look into: the first of these implementations that does not refuse the workload."""

    label: str
    workload: Workload
    implementations: tuple[str, ...]
    capacity: int
    """Bytes of the largest card that is asked about: lines end about where it is full."""
    most: int = MOST
    """The largest batch that is of interest."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a task; ``line`` is None where all refuse, for ``reason``."""

    task: Task
    implementation: str
    line: Line | None
    gradient: int = 0
    """Bytes of one gradient of all trained parameters."""
    reason: str = ""


@contextmanager
def workers(processes: int | None = None) -> Iterator[Executor | None]:
    """Processes that survey, as many as there are cores; None where one would be all."""
    count = processes or cores()
    if count <= 1:
        yield None
        return
    # Not forked: a process that holds threads of torch may not be.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=quiet)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def survey(tasks: Sequence[Task], pool: Executor | None = None) -> Iterator[Found]:
    """What comes of each task, as it comes."""
    if pool is None:
        yield from map(look_into, tasks)
        return
    with _uninterrupted():
        try:
            waiting = {pool.submit(look_into, task): task for task in tasks}
        except BrokenProcessPool:
            yield from map(_killed, tasks)
            return
    for done in as_completed(waiting):
        try:
            yield done.result()
        except BrokenProcessPool:
            yield _killed(waiting[done])


def mapped(work: Callable[[T], R], given: Iterable[T], pool: Executor | None = None) -> Iterator[R]:
    """As ``map``, in the processes of ``pool`` where there are some."""
    if pool is None:
        yield from map(work, given)
        return
    try:
        with _uninterrupted():
            found = pool.map(work, given)
        yield from found
    except BrokenProcessPool:
        raise DpbenchError("a process that traced was killed, perhaps for its memory; make room and go on") from None


def _killed(task: Task) -> Found:
    reason = "a process that traced was killed, perhaps for its memory; try fewer --impl at once"
    return Found(task, task.implementations[0], None, reason=reason)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that are started here leave Ctrl-C to this one; elsewhere than in the main thread it has no say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def quiet() -> None:
    """What a process does first: it ends with its parent, and leaves warnings, which come once in each, to it."""
    warnings.simplefilter("ignore")
    if parent := parent_process():
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def line_of(tracer: Tracer, capacity: int, most: int) -> Line:
    """From ``FEW`` examples to about as many as fill ``capacity``: what lies between them is not extrapolated."""
    first = tracer.at(FEW)
    room = max(capacity - first.resident, 0)
    end = max(FEW + 1, min(FEW * room // max(first.peak, 1), most, END))
    return Line(first, tracer.at(end), FEW, end)


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
                line = line_of(tracer, task.capacity, task.most)
        except DpbenchError as error:
            reasons.append(str(error))
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}".splitlines()[0])
        else:
            item = 2 if task.workload.precision == "bf16" else 4
            return Found(task, name, line, item * faked.trainable)
    return Found(task, task.implementations[0], None, reason=reasons[0])
