"""One run of ``dpbench reproduce``: figure by figure, each kept as soon as it is whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from dpbench.cards import Card, card
from dpbench.complexity.survey import Found, Task, workers
from dpbench.forkserver import ForkServer
from dpbench.paper import Figure, Run
from dpbench.records import Cell, Record
from dpbench.reproducing import joining, layerwise, terms
from dpbench.reproducing.begun import Asked, held, not_begun, opened
from dpbench.reproducing.counting import Counted, count, is_counted
from dpbench.reproducing.events import Begun, Event, Progress, Seen
from dpbench.reproducing.measuring import Measured
from dpbench.reproducing.plan import command, identity, points, refuse_impossible, run_here, suite_of
from dpbench.reproducing.point import Point
from dpbench.reproducing.predicting import predict
from dpbench.reproduction import Reproduced, Reproduction, Value, how_to_go_on, write
from dpbench.results import read
from dpbench.rows import Row, rows
from dpbench.sweep import Started, refuse_unbuildable, sweep

PATIENCE = 600.0
"""Seconds of silence of a process that builds models; it is left to the figure then."""

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class AtHand:
    """What every figure is made with."""

    asked: Asked
    server: ForkServer
    """Starts the children that measure."""
    pool: Executor | None
    """Traces."""
    lines: dict[Task, Found] = field(default_factory=dict)
    """What was traced for one figure, and may be of another."""


def reproduce(asked: Asked, environment: Mapping[str, Any]) -> Generator[Event, None, Reproduction]:
    """Every figure that is not there yet; each is written to the directory when it is given.

    Raises:
        DpbenchError: what can be known to be wrong, before anything is done.
    """
    planned = [(figure, points(figure, asked.device)) for _, figure in asked.figures]
    for figure, own in planned:
        refuse_impossible(figure, own, asked)
    with held(asked.directory), ForkServer() as server, workers() as pool:
        at_hand = AtHand(asked, server, pool)
        given = {figure.id: identity(figure, own, asked) for figure, own in planned}
        so_far = opened(asked, environment, given)
        for path in not_begun(asked.directory):
            path.unlink()
            yield Progress(f"removed {path}: a crash left it without a header, and nothing was measured in it")
        done = {figure.id for figure in so_far.figures}
        left = [point for figure, own in planned if figure.id not in done for point in own]
        if here := run_here(left, asked):
            # Now, and not when their figure has its turn.
            yield Progress(f"building what is measured once, {len(here)} workloads")
            refuse_unbuildable(server, here, PATIENCE)
        # From now on the directory says what was asked for.
        write(so_far, asked.directory)
        for number, (figure, own) in enumerate(planned, start=1):
            if figure.id in done:
                continue
            yield Begun(figure, number, len(planned))
            made = yield from _one(figure, own, at_hand)
            so_far = so_far.with_figure(made)
            write(so_far, asked.directory)
            yield made
    return so_far


def _one(figure: Figure, own: Sequence[Point], at_hand: AtHand) -> Generator[Event, None, Reproduced]:
    started = time.monotonic()
    asked, pool = at_hand.asked, at_hand.pool
    name = asked.card or figure.card
    made = Reproduced(
        id=figure.id,
        title=figure.title,
        kind=figure.kind,
        printed=figure.printed,
        read=figure.read,
        known={k: v for k in ("precision", "attention", "optimizer", "step", "notes") if (v := getattr(figure, k))},
        card=name,
        values=(),
        commands=tuple(dict.fromkeys(command(run, asked.device) for run in figure.run)),
    )
    if figure.kind == "decisions":
        found = layerwise.of_networks(own, pool)
        made = replace(
            made,
            values=_reasoned(figure, layerwise.values(figure, found)),
            layers={layerwise.label(workload): tuple(map(astuple, own)) for workload, own in found.items()},
        )
    else:
        counted = yield from _counted(own, card(name), pool)
        if figure.kind == "complexity":
            made = replace(made, values=_reasoned(figure, terms.values(figure, own, counted)))
        else:
            made = yield from _costs(figure, own, made, counted, at_hand)
    return replace(made, seconds=time.monotonic() - started)


def _reasoned(figure: Figure, values: Any) -> tuple[Value, ...]:
    return tuple(joining.reasoned(value, figure) for value in values)


def _counted(own: Sequence[Point], on: Card, pool: Executor | None) -> Generator[Event, None, Counted]:
    """What is traced at its own batch."""
    counting = count([p.full for p in own if any(is_counted(p.full, q) for q in p.run.quantities)], on, pool)
    return (yield from _progress(counting, lambda workload: f"counted: {workload.label()}"))


def _progress(work: Generator[S, None, R], say: Callable[[S], str]) -> Generator[Event, None, R]:
    """Each step of ``work`` as an event; what it returns."""
    while True:
        try:
            step = next(work)
        except StopIteration as end:
            found: R = end.value
            return found
        yield Progress(say(step))


def _costs(
    figure: Figure, own: Sequence[Point], made: Reproduced, counted: Counted, at_hand: AtHand
) -> Generator[Event, None, Reproduced]:
    asked = at_hand.asked
    wanted = [p.full for p in own if not all(is_counted(p.full, q) for q in p.run.quantities)]
    predicting = predict(wanted, card(made.card), at_hand.pool, at_hand.lines)
    predicted = yield from _progress(predicting, lambda one: f"traced: {one.implementation} {one.task.label}")
    measured: list[Measured] = []
    files: list[str] = []
    left_out = [
        f"{p.run.suite}: {p.run.here.left_out} ({p.run.here.why})"
        for p in own
        if p.here is None and asked.measured is not False
    ]
    for run in figure.run:
        cells = [p.here for p in own if p.run is run and p.here is not None]
        if asked.measured is False or not cells or not suite_of(figure, run, asked.device).measure:
            measured.append(Measured({}))
            continue
        path, found = yield from _measured(figure, run, cells, at_hand)
        measured.append(Measured(found, path.name))
        files.append(path.name)
    if asked.measured is False:
        left_out.append("nothing was measured, as was asked for")
    values = joining.values(figure, own, joining.Found(predicted, counted, measured))
    return replace(made, values=tuple(values), left_out=tuple(dict.fromkeys(left_out)), files=tuple(files))


def _measured(
    figure: Figure, run: Run, cells: Sequence[Cell], at_hand: AtHand
) -> Generator[Event, None, tuple[Path, dict[Cell, Row]]]:
    """Run them, or what an earlier run of the same directory has not done of them."""
    asked = at_hand.asked
    suite = suite_of(figure, run, asked.device)
    before = [one for one in sorted(asked.directory.glob("*.jsonl")) if read(one).header.suite == suite.name]
    path = asked.directory
    records: list[Record] = []
    unique = list(dict.fromkeys(cells))
    for event in sweep(
        suite,
        unique,
        command=asked.command,
        directory=asked.directory,
        resume=before[-1] if before else None,
        server=at_hand.server,
        go_on=how_to_go_on(asked.directory),
    ):
        if isinstance(event, Started):
            path = event.path
            records = list(event.done)
        elif isinstance(event, Record):
            records.append(event)
            yield Seen(rows(records)[-1], len(records), len(unique))
    return path, {row.record.cell: row for row in rows(records, file=str(path))}
