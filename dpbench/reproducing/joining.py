"""The three columns of a figure's cells: what was printed, what is predicted, what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from dpbench.paper import BOUND, UNITS, Figure, Printed, Quantity, Reason, Row
from dpbench.records import Workload
from dpbench.reproducing.counting import Counted, is_counted
from dpbench.reproducing.fitting import matches
from dpbench.reproducing.measuring import Measured
from dpbench.reproducing.point import Point
from dpbench.reproducing.predicting import Predicted
from dpbench.reproduction import FAR, Number, Three, Value
from dpbench.suite import BASELINE


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of the cells of a figure."""

    predicted: Predicted
    counted: Counted
    """FLOPs, and memory and throughput of small batches."""
    measured: Sequence[Measured]
    """Of each run."""


def values(figure: Figure, points: Sequence[Point], found: Found) -> list[Value]:
    """Every number, in the order of the suites, with the printed rows of a workload one after the other."""
    made: list[Value] = []
    for run, measured in zip(figure.run, found.measured, strict=True):
        own = [point for point in points if point.run is run]
        for quantity in run.quantities:
            for workload in dict.fromkeys(point.full.workload for point in own):
                some = [point for point in own if point.full.workload == workload]
                for row in _rows(figure, workload, quantity):
                    made += _of_row(row, some, quantity, found, measured)
    return [reasoned(value, figure) for value in made]


def _rows(figure: Figure, workload: Workload, quantity: Quantity) -> list[Row]:
    """Those that were printed of it; where none was, ours alone."""
    printed = [row for row in figure.row if row.of(quantity) and matches(row, workload)]
    return printed or [Row(model=workload.model)]


def _of_row(row: Row, points: Sequence[Point], quantity: Quantity, found: Found, measured: Measured) -> Iterator[Value]:
    base = row.relative_to or BASELINE
    absolutes = {p.full.implementation: _three(row, p, quantity, found, measured) for p in points}
    by_name = {p.full.implementation: p for p in points}
    for name, point in by_name.items():
        printed = row.of(quantity)
        if row.relative_to and name not in printed:
            continue
        absolute, reference = absolutes[name], absolutes.get(base, Three())
        ratio = Three() if name == base else _ratio(absolute, reference, base)
        paired = measured.ratio(point.here, quantity)
        if name != base and base == BASELINE and paired is not None:
            ratio = replace(ratio, measured=paired)
        if row.relative_to:
            # What was printed is a ratio already.
            ratio, absolute = replace(ratio, published=_number(printed[name])), replace(absolute, published=Number())
        yield Value(
            row=_label(row, point.full.workload),
            model=point.full.workload.model,
            sizes=_sizes(point.full.workload),
            quantity=quantity,
            unit=UNITS[quantity],
            implementation=name,
            absolute=absolute,
            ratio=ratio,
            relative_to=base,
            expected_here=_expected(measured, point, by_name.get(base), quantity),
            at=_at(point, quantity),
        )


def _three(row: Row, point: Point, quantity: Quantity, found: Found, runs: Measured) -> Three:
    printed = row.of(quantity).get(point.full.implementation)
    published = Number() if printed is None else _number(printed)
    if quantity == "flops":
        return Three(published, found.counted.formula(point.full), found.counted.traced(point.full))
    measured = runs.of(point.here, quantity)
    if is_counted(point.full, quantity):
        counted = found.counted.memory if quantity == "memory" else found.counted.throughput
        return Three(published, counted(point.full), measured)
    return Three(published, found.predicted.of(point.full, quantity), measured)


def _number(printed: Printed) -> Number:
    return Number(word=printed) if isinstance(printed, str) else Number(float(printed))


def _ratio(one: Three, other: Three, base: str) -> Three:
    def over(a: Number, b: Number) -> Number:
        if not (a and b):
            return Number()
        bound = BOUND.fullmatch(a.word)
        if a.word and not bound:
            return a
        if b.word:
            return Number(word=f"no ratio: {base} is {b.word}")
        if bound:
            return Number(word=f"{bound[1]}{float(bound[2]) / b.value:.3g}") if b.value else Number()
        return Number(a.value / b.value) if a.value is not None and b.value else Number()

    return Three(
        over(one.published, other.published), over(one.predicted, other.predicted), over(one.measured, other.measured)
    )


def _expected(measured: Measured, point: Point, base: Point | None, quantity: Quantity) -> Number:
    """The ratio of speeds that a roofline of this machine gives at the size that was measured."""
    if quantity != "throughput" or base is None or point is base:
        return Number()
    ours, theirs = measured.expected(point.here), measured.expected(base.here)
    return Number(theirs / ours) if ours and theirs else Number()


def _label(row: Row, workload: Workload) -> str:
    sizes = [f"{name}={value}" for name, value in _sizes(workload).items()]
    trained = [workload.trainable] if workload.trainable != "all" else []
    return " ".join([row.model, *sizes, *trained, *([row.label] if row.label else [])])


def _sizes(workload: Workload) -> dict[str, int]:
    """Those that it has; none for the largest batch, another for each implementation."""
    named = (("T", workload.seq_len), ("px", workload.image_size), ("B", workload.batch))
    return {name: value for name, value in named if isinstance(value, int)}


def _at(point: Point, quantity: Quantity) -> str:
    """The size at which it was measured, where that is another."""
    if quantity == "flops" or point.here is None:
        return ""
    here, full = point.here.workload, point.full.workload
    return "" if replace(here, device=full.device) == full else here.label()


def reasoned(value: Value, figure: Figure) -> Value:
    """With the reasons that the figure's file has for a difference, one after the other."""
    if not value.far:
        return value
    fitting = [reason for reason in figure.reason if _fits(reason, value)]
    if not fitting:
        return value
    return replace(
        value, reason=" ".join(r.says for r in fitting), sure=", ".join(dict.fromkeys(r.sure for r in fitting))
    )


def _fits(reason: Reason, value: Value) -> bool:
    both = {"absolute": value.absolute, "ratio": value.ratio}
    far = [name for name, three in both.items() if three.off is not None and abs(three.off) > FAR]
    return (
        fnmatchcase(value.implementation, reason.implementation)
        and fnmatchcase(value.row, f"{reason.model}*" if not reason.model.endswith("*") else reason.model)
        and fnmatchcase(value.quantity, reason.quantity)
        and (reason.of is None or reason.of in far)
    )
