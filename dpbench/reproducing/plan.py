"""What stands for a figure: the cells of its suites at full size, each with the size at which it is measured here."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbench import sweep
from dpbench.cards import card
from dpbench.errors import DpbenchError
from dpbench.paper import Figure, Here, Run
from dpbench.precision import check_device
from dpbench.records import Cell, Workload
from dpbench.registry import load as load_implementation
from dpbench.reproducing.begun import Asked
from dpbench.reproducing.fitting import refuse_misfits
from dpbench.reproducing.point import Point
from dpbench.selection import parse
from dpbench.suite import Suite, load
from dpbench.suitefile import AXES, validate


def points(figure: Figure, device: str | None) -> list[Point]:
    """Every cell of a figure's suites.

    ``device``: where they are measured at full size; None: on this machine's CPU, at the reduced size.

    Raises:
        DpbenchError: a suite, an axis or a row of the figure that fits nothing.
    """
    found = []
    for run in figure.run:
        out = parse(run.here.left_out) if run.here.left_out and device is None else None
        for cell in sweep.cells_of(load(run.suite), run.select or None):
            size = (
                reduced(cell.workload, run.here, f"figure {figure.id}, here")
                if device is None
                else replace(cell.workload, device=device)
            )
            here = None if out is not None and out(cell) else Cell(cell.implementation, size)
            found.append(Point(run, cell, here))
    refuse_misfits(figure, found)
    return found


def refuse_impossible(figure: Figure, points: Sequence[Point], asked: Asked) -> None:
    """Raise DpbenchError for an implementation, a device or a card that is not there, and for what they cannot do."""
    for name in dict.fromkeys(point.full.implementation for point in points):
        load_implementation(name)
    if asked.device is not None:
        check_device(asked.device)
    on = card(asked.card or figure.card)
    if figure.kind != "cost":
        return
    for point in points:
        if "throughput" in point.run.quantities:
            on.peak(point.full.workload.precision)
        if point.here is not None and asked.measured is not False and any(measured(point.run)):
            sweep.refuse_impossible(point.here.workload, suite_of(figure, point.run, asked.device).memory)


def identity(figure: Figure, points: Sequence[Point], asked: Asked) -> str:
    """Of what a figure, its suites and its sizes say: numbers of two of them do not go into one reproduction."""
    suites = [suite_of(figure, run, asked.device) for run in figure.run]
    return hashlib.sha256(repr((figure, points, suites)).encode()).hexdigest()[:16]


def run_here(points: Iterable[Point], asked: Asked) -> list[Workload]:
    """Every workload that is run, once."""
    if asked.measured is False:
        return []
    return list(dict.fromkeys(p.here.workload for p in points if p.here is not None and any(measured(p.run))))


def reduced(workload: Workload, here: Here, where: str) -> Workload:
    """The same at the size that is measured here.

    Raises:
        DpbenchError: an axis or a value that no suite may have; ``where`` says where it stands.
    """
    given = {axis: _one(value, workload, axis) for axis, value in here.axes.items()}
    changed = {axis: value for axis, value in given.items() if value is not None or axis not in AXES}
    # What a suite would refuse is refused here, and with the same words.
    length = {name: getattr(here, name) for name in ("rounds", "budget_s", "timeout_s", "memory")}
    axes = validate({"axes": {"model": "any", "batch": 1, **changed}, **length}, where).axes
    values = {axis: getattr(axes, axis) for axis in changed}
    if several := [axis for axis, given in values.items() if len(given) != 1 or axis == "implementation"]:
        raise DpbenchError(f"{where}: axes.{several[0]} is {changed[several[0]]!r}, expected one value for a workload")
    return replace(workload, **{axis: given[0] for axis, given in values.items()})


def _one(given: Any, workload: Workload, axis: str) -> Any:
    """One value for all, or the one for the workload's own."""
    return given.get(str(getattr(workload, axis, None))) if isinstance(given, Mapping) else given


def suite_of(figure: Figure, run: Run, device: str | None) -> Suite:
    """How long, and what, is measured of a run's cells."""
    full, here = load(run.suite), run.here
    # No two runs are called the same: an id has no dot, and a suite may be in two runs, or a file anywhere.
    name = f"{figure.id}.{1 + [one is run for one in figure.run].index(True)}.{Path(run.suite).stem}"
    measure = tuple(measured(run))
    if device is not None:
        return replace(full, name=name, measure=measure)
    return replace(
        full,
        name=name,
        measure=measure,
        rounds=here.rounds,
        budget_s=here.budget_s,
        timeout_s=here.timeout_s,
        memory=here.memory or full.memory,
    )


def measured(run: Run) -> Iterator[str]:
    """What is taken of its cells; FLOPs are counted at full size, and nothing is run for them."""
    wanted = set(run.quantities)
    if wanted & {"throughput", "memory"}:
        yield "traced"
    if wanted & {"memory", "max_batch", "throughput"}:
        yield "memory"
    if "throughput" in wanted:
        yield "seconds"


def command(run: Run, device: str | None) -> str:
    """That measures a suite at full size by itself, for who reads a figure."""
    words = ["dpbench", "run", run.suite, *(["-k", run.select] if run.select else [])]
    return shlex.join([*words, "--device", device or "cuda"])
