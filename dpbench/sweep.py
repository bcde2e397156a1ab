"""One run, from what is asked for to the results file: cells, checks before anything is written, measuring."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpbench import contain, store
from dpbench.child import Launcher
from dpbench.entrypoints import points
from dpbench.errors import DpbenchError
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.paritycache import ParityCache
from dpbench.records import MAX, Cell, Record, Workload, plain
from dpbench.runner import Event, Runner
from dpbench.selection import select
from dpbench.sizes import bytes_of
from dpbench.suite import BASELINE, Suite, from_options, group, load, spell_option
from dpbench.suitefile import validate
from dpbench.supervise import Ended, Patience, supervise


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The first event of a run: what is going to be done, and where it is written."""

    path: Path
    cells: tuple[Cell, ...]
    done: tuple[Record, ...]
    """Records of an earlier run that is resumed."""
    environment: Mapping[str, Any]


def asked(suite: str | Path | None, axes: Mapping[str, Any], settings: Mapping[str, Any]) -> Suite:
    """A suite, its axes and settings replaced by those that are given, or one made of the axes alone.

    ``settings``: rounds, budget_s, timeout_s, memory and measure; None stands for what was not given.
    """
    given: dict[str, Any] = {k: v for k, v in settings.items() if v is not None}
    if "measure" in given:
        given["measure"] = list(given["measure"])
    if suite is None:
        return from_options(axes, title="run", **given)
    validate({"axes": {"model": "any", "batch": 1}, **given}, "options", spell_option)
    if "measure" in given:
        given["measure"] = tuple(given["measure"])
    return replace(load(suite).override(axes), **given)


def names() -> list[str]:
    """The implementations that are installed, the baseline first; nothing is loaded for that."""
    from dpbench.reporting.palette import order

    return order(set(points()))


def cells_of(suite: Suite, expression: str | None = None) -> list[Cell]:
    """The cells of a suite that ``expression`` selects, and the baseline of each of their workloads."""
    cells = suite.cells(names())
    if expression:
        cells = select(cells, expression)
    chosen = []
    for workload, members in group(cells).items():
        chosen += [Cell(n, workload) for n in dict.fromkeys([BASELINE, *(c.implementation for c in members)])]
    return chosen


def sweep(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    command: str = "",
    directory: Path | str = store.DIRECTORY,
    resume: Path | str | None = None,
    recheck: bool = False,
    server: ForkServer | None = None,
    go_on: str = "",
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> Generator[Started | Event]:
    """Measure ``cells``; :class:`Started` comes first, and each record is on the disk when it is given.

    ``server`` is used and left running; without one, one is started for this run alone. ``go_on``: what to do where
    the results cannot be written, if that is another thing than to resume their file.

    Raises:
        DpbenchError: for whatever can be known to be wrong before; then nothing is written.
    """
    with contain.uninterrupted():
        from dpbench.environment import environment
        from dpbench.registry import source_hash

    with nullcontext(server) if server else ForkServer() as server:
        sources = {name: source_hash(name) for name in dict.fromkeys(c.implementation for c in cells)}
        check(server, cells, suite.timeout_s, suite.memory)
        where = {**environment(), "settings": settings_of(suite)}
        if resume is None:
            writer = store.create(suite.name, cells, where, command, directory, go_on=go_on)
        else:
            writer = store.open_for_resume(resume, cells, where, sources, say, go_on)
        with writer:
            done = tuple(writer.done.values())
            yield Started(path=writer.path, cells=tuple(cells), done=done, environment=where)
            runner = Runner(
                launcher=server,
                rounds=suite.rounds,
                measure=suite.measure,
                budget_s=suite.budget_s,
                timeout_s=suite.timeout_s,
                capacity=None if suite.memory is None else bytes_of(suite.memory),
                sources=sources,
                environment=where,
                command=command,
                checked=ParityCache(sources, () if recheck else done, recheck),
            )
            with closing(runner.run([c for c in cells if c not in writer.done])) as events:
                for event in events:
                    if isinstance(event, Record):
                        writer.append(event)
                    yield event


def settings_of(suite: Suite) -> dict[str, Any]:
    """How long a suite measures, and what, as an environment has it."""
    return {name: plain(getattr(suite, name)) for name in ("rounds", "budget_s", "timeout_s", "memory", "measure")}


def check(server: Launcher, cells: Sequence[Cell], timeout_s: float, memory: str | None = None) -> None:
    """Raise for every workload that cannot be: an unknown model, a device that is not here, ..."""
    workloads = list(dict.fromkeys(c.workload for c in cells))
    for workload in workloads:
        refuse_impossible(workload, memory)
    refuse_unbuildable(server, workloads, timeout_s)


def refuse_unbuildable(server: Launcher, workloads: Iterable[Workload], timeout_s: float) -> None:
    """Raise DpbenchError with every mistake in what the user wrote of the models, all built once for that."""
    smallest = list(dict.fromkeys(map(_smallest, workloads)))
    mistakes: dict[str, str] = {}
    job = Job(kind="check", workload=smallest[0], also=tuple(smallest[1:]))
    for seen in supervise(server, job, Patience(timeout_s), mistakes):
        if isinstance(seen, Ended):
            # What breaks here will break again where it is measured, and be recorded there.
            break
    if mistakes:
        raise DpbenchError("\n".join(mistakes))


def refuse_impossible(workload: Workload, memory: str | None) -> None:
    """Raise for batches that cannot be; ``memory``: what a step may take where the batch is ``max``."""
    batch = workload.batch
    if batch == MAX:
        if memory is None and not workload.device.startswith("cuda"):
            raise DpbenchError(
                f"batch is 'max' on {workload.device}, expected the memory that a step may take there: --memory 4GB "
                '(memory = "4GB" in a suite). On CUDA it is the card\'s.'
            )
    elif workload.logical_batch is not None and batch > workload.logical_batch:
        raise DpbenchError(
            f"batch is {batch} and logical_batch {workload.logical_batch}; expected physical batches that "
            "add up to the logical one: make it larger, or leave that combination out ([[exclude]])"
        )


def _smallest(workload: Workload) -> Workload:
    return replace(workload, batch=1, logical_batch=None, step="gradient", optimizer="sgd", seed=0)


def resumed(path: Path | str) -> tuple[Suite, list[Cell]]:
    """The suite settings and the cells that a results file was begun with."""
    header = store.read(path).header
    settings = header.environment.get("settings", {})
    if "measure" in settings:
        settings = {**settings, "measure": tuple(settings["measure"])}
    suite = Suite(name=header.suite, title=header.suite, **{k: settings[k] for k in settings})
    return suite, list(header.cells)
