"""The largest batch that a run finds, against the traced one; and whether more does not fit."""

from __future__ import annotations

import tempfile
from dataclasses import replace

from dpbench.complexity.maxbatch import capacity_of, to_run
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import MAX, Outcome, Record
from dpbench.reporting.numbers import size
from dpbench.suite import Suite
from dpbench.sweep import cells_of, sweep
from tests.benchmarks.gpu_check.asking import figures
from tests.benchmarks.gpu_check.check import Check, Say, answer, could_not
from tests.benchmarks.gpu_check.driver import DEVICE
from tests.benchmarks.gpu_check.workloads import WIDE

NAMES = ("nonprivate", "bk", "opacus")
FOUND, MORE = "{}: found by --batch max", "{}: an eighth more"
PARTS = [form.format(name) for form in (FOUND, MORE) for name in NAMES]
MOST = 8 * 10**9
"""Bytes: of a larger card a part is taken, so that a step takes no seconds and no tensor has 2^31 elements."""


def largest(say: Say) -> None:
    """Through a run, as a user would; then by one step of its own."""
    memory = min(MOST, capacity_of(DEVICE))
    workload = replace(WIDE["gpt2"], batch=MAX)
    axes = {"model": (workload.model,), "layers": (workload.layers,), "seq_len": (workload.seq_len,)}
    block = {**axes, "attention": ("eager",), "batch": (MAX,), "device": (DEVICE,), "implementation": NAMES}
    suite = Suite(
        name="largest", title="largest", rounds=1, budget_s=0.3, timeout_s=60.0, memory=f"{memory}B", blocks=(block,)
    )
    with ForkServer() as server, tempfile.TemporaryDirectory() as directory:
        events = list(sweep(suite, cells_of(suite), directory=directory, server=server))
        records = {event.cell.implementation: event for event in events if isinstance(event, Record)}
        for name in NAMES:
            found(say, records[name], to_run(name, workload, memory).batch, memory)
        for name in NAMES:
            more(say, server, records[name], memory)


def found(say: Say, record: Record, traced: int, memory: int) -> None:
    """A trace sees no workspaces, for which the run may have had to take an eighth off."""
    got = record.largest or 0
    least = traced - max(1, traced // 8)
    said = f"B={got}, {record.outcome} {record.reason}".strip()
    expected = f"B from {least} to {traced} (traced, in {size(memory)}), and measured there"
    right = record.outcome is Outcome.OK and least <= got <= traced
    say(
        answer(FOUND.format(record.cell.implementation), expected, said, right, found=got, traced=traced, memory=memory)
    )


def more(say: Say, server: ForkServer, record: Record, memory: int) -> None:
    """One step in a child that has as much memory, and no more."""
    name, batch = record.cell.implementation, record.largest
    part, expected = MORE.format(name), "runs out of memory"
    if not batch:
        say(could_not(part, expected, "there is no batch that was found"))
        return
    tried = batch + max(1, batch // 8)
    workload = replace(record.cell.workload, batch=tried)
    fits, ended = figures(server, Job(kind="memory", workload=workload, implementations=(name,), capacity=memory))
    ran_out = ended.get(name, "").startswith(Outcome.OUT_OF_MEMORY)
    got = f"B={tried}: " + (ended[name] if name in ended else f"fits, {fits[name]['memory']}")
    say(answer(part, expected, got, ran_out, batch=tried, memory=memory))


CHECKS = (Check("largest batch", PARTS, 80.0, largest),)
