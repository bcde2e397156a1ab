"""Whether the suites of a figure have what the figure needs of them: what fits nothing would not be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from dpbench.errors import DpbenchError
from dpbench.paper import UNITS, Figure, Reason, Row
from dpbench.records import MAX, Cell, Workload
from dpbench.reproducing.point import Point

SHOWN_BY = {"1": "nonprivate", "2a": "nonprivate", "2b": "nonprivate", "3": "bk", "4": "opacus", "5": "opacus"}
"""An implementation that goes through a module exactly once."""


def matches(row: Row, workload: Workload) -> bool:
    """Whether a printed row is of that workload, whatever the model's options; the largest batch is of every B."""
    return (
        row.model in (workload.model, workload.model.partition("(")[0])
        and row.T in (None, workload.seq_len)
        and row.image in (None, workload.image_size)
        and (workload.batch == MAX or row.B in (None, workload.batch))
    )


def shown_by(term: str) -> str:
    """The implementation whose FLOPs show what a term is of: a module, or itself."""
    module = term.removeprefix("module ")
    return SHOWN_BY.get(module, "") if module != term else term


def refuse_misfits(figure: Figure, points: Sequence[Point]) -> None:
    """Raise DpbenchError with everything that fits nothing."""
    mistakes = [
        *_rows(figure, points),
        *_terms(figure, points),
        *_reasons(figure, points),
        *_quantities(figure, points),
        *_axes(points),
    ]
    if mistakes:
        raise DpbenchError("\n  ".join([f"figure {figure.id} and its suites do not fit:", *dict.fromkeys(mistakes)]))


def _rows(figure: Figure, points: Sequence[Point]) -> Iterator[str]:
    suites = ", ".join(run.suite for run in figure.run) or "any suite"
    for row in figure.row:
        what = f"the row of {row.model} (T={row.T}, image={row.image}, B={row.B})"
        own = [point for point in points if matches(row, point.full.workload)]
        if not own:
            yield f"{what} fits no cell of {suites}; expected a workload of that model and size"
            continue
        for quantity in UNITS:
            there = dict.fromkeys(p.full.implementation for p in own if quantity in p.run.quantities)
            needed = [*row.of(quantity), *([row.relative_to] if row.relative_to and row.of(quantity) else [])]
            for name in [name for name in needed if name not in there]:
                yield (
                    f"{what} has {quantity} of {name}, expected of {', '.join(there) or 'none'}: "
                    f"those that a run of {suites} gives it of"
                )


def _terms(figure: Figure, points: Sequence[Point]) -> Iterator[str]:
    there = {point.full for point in points}
    for workload in dict.fromkeys(point.full.workload for point in points):
        for term in figure.term:
            if not (name := shown_by(term.of)):
                yield f"there is no {term.of}; expected one of {', '.join(SHOWN_BY)}"
            elif Cell(name, workload) not in there:
                yield f"the term of {term.of} needs {name}, which is not run on {workload.label()}"


def _reasons(figure: Figure, points: Sequence[Point]) -> Iterator[str]:
    names = {term.of for term in figure.term} | {point.full.implementation for point in points}
    quantities = {quantity for point in points for quantity in point.run.quantities}
    for reason in figure.reason:
        what = f"the reason {reason.says[:40]!r}"
        for key, given, there in (
            ("implementation", reason.implementation, names),
            ("quantity", reason.quantity, quantities),
        ):
            if not any(fnmatchcase(name, given) for name in there):
                yield f"{what} is for {key} {given!r}, expected of {', '.join(sorted(there))}"
        workloads = [point.full.workload for point in points]
        if not any(is_for(reason, w.model, w.seq_len, w.image_size) for w in workloads):
            sizes = f"model={reason.model!r}, T={list(reason.T)}, image={list(reason.image)}"
            yield f"{what} is for {sizes}, which fits no workload of its suites"


def is_for(reason: Reason, model: str, T: int | None, image: int | None) -> bool:
    """Whether a reason is for a workload, whatever the model's options."""
    return (
        any(fnmatchcase(name, reason.model) for name in (model, model.partition("(")[0]))
        and (not reason.T or T in reason.T)
        and (not reason.image or image in reason.image)
    )


def _quantities(figure: Figure, points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        run, batch = point.run, point.full.workload.batch
        if figure.kind != "cost" and run.quantities != ("flops",):
            yield f'a figure of {figure.kind} is of FLOPs, expected quantities = ["flops"] of {run.suite}'
        if "max_batch" in run.quantities and (batch != MAX or (point.here and point.here.workload.batch != MAX)):
            yield f'max_batch of {run.suite} at a batch of its own, expected batch = "max" in the suite and here'
        if "flops" in run.quantities and batch == MAX:
            yield f'flops of {run.suite} at batch = "max", expected a number there'


def _axes(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        for axis, given in point.run.here.axes.items():
            if isinstance(given, Mapping):
                own = [str(getattr(p.full.workload, axis, None)) for p in points if p.run is point.run]
                for key in given.keys() - set(own):
                    known = ", ".join(dict.fromkeys(own))
                    yield f"here.axes.{axis} is given for {key}, expected for one of {point.run.suite}: {known}"
