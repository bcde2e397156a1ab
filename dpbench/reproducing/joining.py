"""The three columns of a figure's cells: what was printed, what is predicted, what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from dpbench.paper import BOUND, UNITS, Figure, Printed, Quantity, Reason, Row
from dpbench.records import Workload
from dpbench.reproducing.counting import Counted, is_counted
from dpbench.reproducing.fitting import is_for, matches
from dpbench.reproducing.measuring import Measured
from dpbench.reproducing.point import Point
from dpbench.reproducing.predicting import Predicted
from dpbench.reproduction import Number, Three, Value
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
    wrong = {value.implementation for value in made if value.absolute.measured.word.startswith("wrong")}
    made = [_without_speed(value) if value.implementation in wrong else value for value in made]
    return [reasoned(value, figure) for value in made]


def _without_speed(value: Value) -> Value:
    """Of an implementation whose gradient is wrong somewhere no speed is told, at no size, predicted or measured."""
    if value.quantity != "throughput":
        return value
    none = Number(word="wrong: its gradient is, where it was measured")
    ratio = replace(value.ratio, predicted=none) if value.ratio.predicted else value.ratio
    return replace(value, absolute=replace(value.absolute, predicted=none), ratio=ratio)


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
            ratio = replace(ratio, published=absolute.published)
            absolute = replace(absolute, published=Number())
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
            file=measured.file if quantity != "flops" and point.here is not None else "",
            cell=point.here.workload.label() if quantity != "flops" and point.here is not None else "",
        )


def _three(row: Row, point: Point, quantity: Quantity, found: Found, runs: Measured) -> Three:
    printed = row.of(quantity).get(point.full.implementation)
    published = Number() if printed is None else _number(printed, row.read_to.get(quantity, 0.0))
    if quantity == "flops":
        return Three(published, found.counted.formula(point.full), found.counted.traced(point.full))
    measured = runs.of(point.here, quantity)
    if is_counted(point.full, quantity):
        counted = found.counted.memory if quantity == "memory" else found.counted.throughput
        return Three(published, counted(point.full), measured)
    return Three(published, found.predicted.of(point.full, quantity), measured)


def _number(printed: Printed, error: float) -> Number:
    """With what it may be, where it was read with an error."""
    if isinstance(printed, str):
        return Number(word=printed)
    return Number(printed, low=printed - error, high=printed + error) if error else Number(printed)


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

    published = over(one.published, other.published)
    if published.value is not None and (error := one.published.error + other.published.error):
        published = replace(published, low=published.value * (1 - error), high=published.value * (1 + error))
    return Three(published, over(one.predicted, other.predicted), over(one.measured, other.measured))


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
    """The size at which it was measured, and the memory that it was given, where that is another."""
    if quantity == "flops" or point.here is None:
        return ""
    here, full = point.here.workload, point.full.workload
    if replace(here, device=full.device) == full:
        return ""
    limit = f" in {point.run.here.memory}" if quantity == "max_batch" and point.run.here.memory else ""
    return here.label() + limit


def reasoned(value: Value, figure: Figure) -> Value:
    """With the reasons that the figure's file has for differences: of the numbers, and of their ratios."""
    return replace(
        value,
        absolute=_with_reasons(value.absolute, "absolute", value, figure),
        ratio=_with_reasons(value.ratio, "ratio", value, figure),
    )


def _with_reasons(three: Three, of: str, value: Value, figure: Figure) -> Three:
    """One after the other."""
    if not three.far:
        return three
    fitting = [reason for reason in figure.reason if reason.of in (None, of) and _fits(reason, value)]
    sure = dict.fromkeys(reason.sure for reason in fitting)
    return replace(three, reason=" ".join(reason.says for reason in fitting), sure=", ".join(sure))


def _fits(reason: Reason, value: Value) -> bool:
    return (
        fnmatchcase(value.implementation, reason.implementation)
        and fnmatchcase(value.quantity, reason.quantity)
        and is_for(reason, value.model, value.sizes.get("T"), value.sizes.get("px"))
    )
