"""Results files of made-up records, as a report reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbench import store
from dpbench.document.build import build
from dpbench.document.parts import Chart, Document, Entry, Grid
from dpbench.document.sources import Material, material
from dpbench.records import Cell, Outcome, Record, Traced, Workload
from dpbench.results import Results, read
from tests.records_for_tests import ENVIRONMENT, FIRST_NIGHT, record, workload

OTHER = {
    "machine": {
        "id": "m2",
        "cpu": "another",
        "cores": 8,
        "memory_gib": 64,
        "gpus": [{"name": "H100"}, {"name": "H100"}],
    },
    "versions": {"torch": "2.10.0"},
}


def steady(seconds: float) -> list[list[float]]:
    """Six rounds around a time, that scatter by a thousandth."""
    return [[seconds * (1 + 0.001 * i)] * 3 for i in range(6)]


def shaky(seconds: float) -> list[list[float]]:
    """Six rounds around a time, every other one a fifth off."""
    return [[seconds * (1.2 if i % 2 else 1 / 1.2)] * 3 for i in range(6)]


def timed(name: str, seconds: float, on: Workload | None = None, **more: Any) -> Record:
    """A record of steady rounds."""
    return record(name, on, seconds=steady(seconds), **more)


def wrong(name: str, on: Workload | None = None) -> Record:
    """A wrong gradient, that was timed and weighed all the same: nothing of that may be shown."""
    right = timed(name, 1e-9, on)
    bad = record(name, on, Outcome.WRONG, "wte.weight differs by 0.13", error=0.13)
    return replace(bad, metrics=right.metrics, largest=987_654, traced=Traced(flops=1, bytes=1, peak=1))


def file(
    directory: Path,
    records: Sequence[Record],
    environment: Mapping[str, Any] = ENVIRONMENT,
    cells: Sequence[Cell] | None = None,
    run: str = "",
) -> Results:
    """A results file, read again."""
    every = [r.cell for r in records] if cells is None else cells
    with store.create("made-up", every, environment, "dpbench run made-up", directory, FIRST_NIGHT, run=run) as writer:
        for r in records:
            writer.append(r)
    return read(writer.path)


def of(directory: Path, *records: Record) -> Material:
    """What a report is made from, of one file."""
    return material([file(directory, records)])


def reported(directory: Path, *records: Record) -> Document:
    """The report of one file."""
    return build([file(directory, records)])


def grid(document: Document, name: str) -> Grid:
    """A table of a report."""
    return next(g for s in document.sections for g in s.parts if isinstance(g, Grid) and g.id == name)


def charts(document: Document) -> list[Chart]:
    """All charts of a report."""
    return [c for s in document.sections for c in s.parts if isinstance(c, Chart)]


def column(of: Grid, title: str) -> list[Entry]:
    """What stands in one column of a table."""
    place = [c.title for c in of.columns].index(title)
    return [line[place] for line in of.lines]


LARGEST = workload(batch="max")  # type: ignore[arg-type]
