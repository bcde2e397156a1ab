"""The cells of suites as benchmarks of pytest-benchmark: one item for each, right before it is fast.

Gradients are checked and memory is taken in processes of their own, as in a run. Time is pytest-benchmark's to take,
in pytest's own process, with all its options. A cell that is wrong, fails or runs out of memory fails; one that is
refused is skipped with the reason, unless a run that is compared with has a figure of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch

from dpbench import contain
from dpbench.built import Built
from dpbench.environment import environment
from dpbench.errors import DpbenchError
from dpbench.forkserver import ForkServer
from dpbench.meters import meter_for
from dpbench.paritycache import ParityCache
from dpbench.prepared import Prepared
from dpbench.records import Cell, Metric, Outcome, Record, Workload
from dpbench.registry import source_hash
from dpbench.reporting.benchmarks import extra_info, named, of_one_size
from dpbench.rows import rows
from dpbench.runner import Runner
from dpbench.sizes import bytes_of
from dpbench.suite import Suite, find, group
from dpbench.sweep import asked, cells_of, refuse_impossible
from dpbench.tensors import marks
from dpbench.timed import SECONDS
from dpbench.timing import warm_up

Benchmark = Any
"""pytest-benchmark's fixture, which has no types."""


def items(session: pytest.Session, suites: Sequence[str]) -> Iterator[pytest.Item]:
    """Every cell of the suites that the options choose.

    Raises:
        UsageError: pytest-benchmark is not there, or two suites have one name.
        DpbenchError: for whatever can be known to be wrong before anything is measured.
    """
    config = session.config
    if not config.pluginmanager.has_plugin("benchmark"):
        raise pytest.UsageError(
            "--dpbench needs pytest-benchmark, which is not there. Install it with: pip install pytest-benchmark; "
            "or leave out -p no:benchmark"
        )
    server = ForkServer()
    config.add_cleanup(server.close)
    impl = config.getoption("dpbench_impl")
    paths: dict[str, Path] = {}
    for text in suites:
        path = find(text).resolve()
        suite = asked(text, {"implementation": ",".join(impl).split(",") if impl else None}, {})
        if suite.name in paths and paths[suite.name] != path:
            raise pytest.UsageError(f"{paths[suite.name]} and {path} have one name, by which cells are told apart")
        if suite.name in paths:
            continue
        paths[suite.name] = path
        runner, groups = _runner(server, suite, config.getoption("dpbench_select"))
        for workload, members in groups.items():
            node = WorkloadNode.from_parent(
                session, path=path, nodeid=suite.name, name=workload.label(), workload=workload, runner=runner
            )
            for cell in members:
                yield CellItem.from_parent(node, name=named(cell), callobj=node.test(cell), cell=cell)


def _runner(server: ForkServer, suite: Suite, select: str | None) -> tuple[Runner, dict[Workload, list[Cell]]]:
    """What checks and weighs the cells of a suite, and those that are chosen, by workload."""
    chosen = cells_of(suite, select)
    for workload in group(chosen):
        refuse_impossible(workload, suite.memory)
        if not of_one_size(workload):
            raise DpbenchError(
                f"{workload.label()}: at its largest batch each implementation takes steps of another size, and "
                "pytest-benchmark compares the times of steps. Add logical_batch, or use: dpbench run"
            )
    sources = {name: source_hash(name) for name in dict.fromkeys(c.implementation for c in chosen)}
    runner = Runner(
        launcher=server,
        measure=("memory",),
        budget_s=suite.budget_s,
        timeout_s=suite.timeout_s,
        capacity=None if suite.memory is None else bytes_of(suite.memory),
        sources=sources,
        environment=environment(),
        checked=ParityCache(sources),
    )
    return runner, group(chosen)


class CellItem(pytest.Function):
    """One cell."""

    def __init__(self, *, cell: Cell, **rest: Any) -> None:
        super().__init__(**rest)
        self.cell = cell
        # A cell without a speed has been judged before the fixture could be used.
        self.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is reported from: its suite."""
        return self.path, 0, self.nodeid


class WorkloadNode(pytest.Module):
    """The cells of one workload, which is built once for them and given up after the last."""

    obj = None
    """There is no module."""

    def __init__(self, *, workload: Workload, runner: Runner, **rest: Any) -> None:
        super().__init__(**rest)
        self._workload, self._runner = workload, runner
        self._built: tuple[Workload, Built] | None = None

    def setup(self) -> None:
        """Remember what is about to be set in this process."""
        super().setup()
        self._kept = ExitStack()
        self._kept.enter_context(_kept())

    def teardown(self) -> None:
        """Give up the model."""
        self._built = None
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()
        self._kept.close()
        super().teardown()

    def test(self, cell: Cell) -> Callable[[Benchmark], None]:
        """The test of one cell."""

        def test(benchmark: Benchmark) -> None:
            record = self._records[cell]
            benchmark.group = self._workload.label()
            _judge(record, self._has_figure(cell))
            self._time(record, benchmark)

        return test

    @cached_property
    def _records(self) -> dict[Cell, Record]:
        """What became of each cell that is run, but for its speed."""
        run = [item.cell for item in self.session.items if isinstance(item, CellItem) and item.parent is self]
        return {event.cell: event for event in self._runner.run(run) if isinstance(event, Record)}

    def _time(self, record: Record, benchmark: Benchmark) -> None:
        assert record.batch is not None
        name, ran = record.cell.implementation, replace(self._workload, batch=record.batch)
        built = self._build(ran)
        before = marks(built.model)
        prepared = Prepared(name, built, ran)

        def step() -> None:
            prepared.once()
            if built.device.type == "cuda":
                torch.cuda.synchronize(built.device)

        try:
            if benchmark.enabled:
                if built.device.type == "cpu":
                    # As in the processes of a run; there is no way back.
                    contain.keep_freed_memory()
                warm_up(prepared, meter_for(built.device), self._runner.budget_s)
            benchmark(step)
        finally:
            prepared.close()
            if marks(built.model) != before:
                self._built = None
        if benchmark.stats is not None:
            seconds = Metric("s", (tuple(benchmark.stats.stats.data),))
            timed = replace(record, metrics={**record.metrics, SECONDS: seconds})
            benchmark.extra_info.update(extra_info(timed, *rows([timed])))

    def _build(self, workload: Workload) -> Built:
        if self._built is None or self._built[0] != workload:
            self._built = None
            if workload.threads is not None:
                torch.set_num_threads(workload.threads)
            self._built = workload, Built(workload, workload.physical)
        return self._built[1]

    def _has_figure(self, cell: Cell) -> bool:
        """Whether a run that is compared with (``--benchmark-compare``) has one."""
        benchmarks: Any = self.config.pluginmanager.get_plugin("pytest-benchmark")
        return any(f"{self.nodeid}::{named(cell)}" in run for run in benchmarks.compared_mapping.values())


def _judge(record: Record, had_figure: bool) -> None:
    """Skip or fail what has no speed; without a traceback, as there is no line of the user's to show."""
    if record.outcome is Outcome.OK:
        return
    said = f"{named(record.cell)} {record.outcome}: {record.reason}"
    if record.outcome is Outcome.REFUSED and not had_figure:
        pytest.skip(said)
    if record.outcome is Outcome.REFUSED:
        said += "\nThe run that is compared with has a figure of it: it was not refused then."
    elif record.outcome is Outcome.OUT_OF_MEMORY:
        said += "\nMake it smaller, or leave the cell out of the suite ([[exclude]]), if that is to be so."
    pytest.fail(said, pytrace=False)


@contextmanager
def _kept() -> Iterator[None]:
    """Leave threads, random numbers and TF32 as they were: other tests run in this process, too."""
    threads, cuda = torch.get_num_threads(), torch.backends.cuda.matmul
    tf32 = cuda.allow_tf32, torch.backends.cudnn.allow_tf32
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            cuda.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
            torch.set_num_threads(threads)
