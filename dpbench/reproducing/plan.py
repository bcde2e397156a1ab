"""What stands for a figure: the cells of its suites at full size, each with the size at which it is measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.papers import Figure, Here, Row, Run
from dpbench.records import MAX, Cell, Workload
from dpbench.selection import parse
from dpbench.suite import Suite, load
from dpbench.suitefile import validate
from dpbench.sweep import cells_of


@dataclass(frozen=True, slots=True)
class Point:
    """One implementation on one workload of a figure."""

    run: Run
    full: Cell
    here: Cell | None
    """As it is measured; None where it is left out."""


def points(figure: Figure, device: str | None) -> list[Point]:
    """Every cell of a figure's suites.

    ``device``: where they are measured at full size; None: on this machine's CPU, at the reduced size.

    Raises:
        DpbenchError: a suite, an axis or a row of the figure that fits nothing.
    """
    found = []
    for run in figure.run:
        out = parse(run.here.left_out) if run.here.left_out and device is None else None
        for cell in cells_of(load(run.suite), run.select or None):
            size = reduced(cell.workload, run.here) if device is None else replace(cell.workload, device=device)
            here = None if out is not None and out(cell) else Cell(cell.implementation, size)
            found.append(Point(run, cell, here))
    for row in figure.row:
        if not any(matches(row, point.full.workload) for point in found):
            raise DpbenchError(
                f"figure {figure.id}: the row of {row.model} (T={row.T}, image={row.image}, B={row.B}) fits no cell "
                f"of {', '.join(run.suite for run in figure.run) or 'any suite'}; expected a workload of that model "
                "and size"
            )
    return found


def matches(row: Row, workload: Workload) -> bool:
    """Whether a printed row is of that workload, whatever the model's options; the largest batch is of every B."""
    return (
        row.model in (workload.model, workload.model.partition("(")[0])
        and row.T in (None, workload.seq_len)
        and row.image in (None, workload.image_size)
        and (workload.batch == MAX or row.B in (None, workload.batch))
    )


def reduced(workload: Workload, here: Here) -> Workload:
    """The same at the size that is measured here."""
    changed = {axis: value for axis, given in here.axes.items() if (value := _one(given, workload, axis)) is not None}
    # What a suite would refuse is refused here, and with the same words.
    validate({"axes": {"model": "any", "batch": 1, **changed}}, "here.axes")
    return replace(workload, **changed)


def _one(given: Any, workload: Workload, axis: str) -> Any:
    """One value for all, or the one for the workload's own."""
    return given.get(str(getattr(workload, axis, None))) if isinstance(given, Mapping) else given


def suite_of(figure: Figure, run: Run, device: str | None) -> Suite:
    """How long, and what, is measured of a run's cells."""
    full, here = load(run.suite), run.here
    name = f"{figure.id}-{run.suite}"
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
    """That measures about the same by itself, for who reads a figure."""
    words = ["dpbench run", run.suite]
    if run.select:
        words.append(f"-k '{run.select}'")
    if device is not None:
        words.append(f"--device {device}")
    return " ".join(words)
