"""Figures of papers, reproduced: what was printed, what is predicted for that card, and what was measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from dpbench.decision import Decision
from dpbench.document import threefold
from dpbench.document.parts import Chart, Column, Entry, Grid, Kind, Section
from dpbench.reporting.decisions import chart
from dpbench.reporting.numbers import percent
from dpbench.reporting.threefold import apart, named, notes, number, shares, shown
from dpbench.reproduction import FAR, Number, Reproduced, Reproduction, Three, Value


def sections(reproduction: Reproduction, sources: Mapping[str, str]) -> Iterator[Section]:
    """One for each figure; ``sources``: the id of a results file in this report, by its name."""
    for figure in reproduction.figures:
        own = tuple(sources[name] for name in figure.files if name in sources)
        yield Section(
            id=f"paper-{figure.id}",
            title=figure.title,
            prose=tuple(_prose(figure)),
            parts=(*_charts(figure, own), *_grids(figure, own)),
        )


def title(reproduction: Reproduction) -> str:
    """What a report of it is called."""
    return f"Reproduced: {', '.join(paper.id for paper in reproduction.papers)}"


def sentences(reproduction: Reproduction) -> list[str]:
    """How near predictions come to what was printed, of all and of each figure."""
    cited = "; ".join(paper.citation for paper in reproduction.papers)
    figures = reproduction.figures
    values = [value for figure in figures for value in figure.values]
    far = [value for value in values if value.far]
    unexplained = sum(not value.reason for value in far) or "none"
    made = f"Of {cited}: {len(figures)} of {len(reproduction.asked)} figures are reproduced."
    if not (own := shares(values)):
        return [made]
    return [
        made,
        *(f"{said[0].upper()}{said[1:]}." for said in own),
        f"Published and predicted are over {percent(FAR)} apart in {len(far)} values, "
        f"in {unexplained} without a reason.",
        *(f"{f.title} [{f.id}]: {'; '.join(said)}." for f in figures if (said := shares(f.values))),
    ]


def _prose(figure: Reproduced) -> Iterator[str]:
    on = f" Predicted for: {figure.card}." if figure.kind == "cost" else ""
    where = f"Printed: {figure.printed}. Read: {figure.read}." if figure.printed else "Not printed in this form."
    yield where + on
    yield from (f"{name.capitalize()}: {said}." for name, said in figure.known.items())
    yield from (f"{said[0].upper()}{said[1:]}." for said in notes(figure))
    if figure.commands:
        yield f"By itself, at full size: {'; '.join(figure.commands)}"


def _charts(figure: Reproduced, sources: tuple[str, ...]) -> Iterator[Chart]:
    for i, (network, layers) in enumerate(figure.layers.items(), start=1):
        decisions = [Decision.of(*layer) for layer in layers]
        yield Chart(
            id=f"paper-{figure.id}-{i}",
            caption=f"2T² and pd of each layer: {network}",
            draw=partial(chart, decisions, network),
            alt=f"2T^2 and pd over the layers of {network}",
        )
    for quantity, values in _by_quantity(figure).items():
        found = threefold.drawn(figure, quantity, values)
        if found is not None:
            yield Chart(f"paper-{figure.id}-{_id(quantity)}", found.caption, found.draw, found.caption, sources)


def _grids(figure: Reproduced, sources: tuple[str, ...]) -> Iterator[Grid]:
    for quantity, values in _by_quantity(figure).items():
        columns = _columns(values)
        yield Grid(
            id=f"paper-{figure.id}-{_id(quantity)}",
            caption=f"{figure.title}: {quantity.replace('_', ' ')}, {values[0].unit}",
            columns=tuple(column for column, _ in columns),
            lines=tuple(tuple(entry(value) for _, entry in columns) for value in values),
            notes=tuple(_notes(values)),
            sources=sources,
        )


def _columns(values: Sequence[Value]) -> list[tuple[Column, Callable[[Value], Entry]]]:
    """Those that say something, each with what stands in it."""
    unit, relative = values[0].unit, any(value.ratio != Three() for value in values)
    to = "to nonprivate" if any(v.relative_to == "nonprivate" for v in values) else f"to {values[0].relative_to}"
    every: list[tuple[Column, Callable[[Value], Entry]]] = [
        (Column("published", unit), lambda v: _entry(v.absolute.published, number)),
        (Column("predicted", unit), lambda v: _entry(v.absolute.predicted, number)),
        (Column("measured here", unit), lambda v: _entry(v.absolute.measured, number)),
        (Column("ratio published", to), lambda v: _entry(v.ratio.published, shown)),
        (Column("ratio predicted", to), lambda v: _entry(v.ratio.predicted, shown)),
        (Column("off"), lambda v: _off(v, v.ratio if relative else v.absolute)),
        (Column("ratio measured", to), lambda v: _entry(v.ratio.measured, shown)),
        (Column("expected here", to), lambda v: _entry(v.expected_here, shown)),
    ]
    found: list[tuple[Column, Callable[[Value], Entry]]] = [
        (Column("workload", numeric=False), _workload),
        (Column("implementation", numeric=False), lambda v: Entry(named(v))),
    ]
    return found + [(column, entry) for column, entry in every if any(entry(v).text for v in values)]


def _workload(value: Value) -> Entry:
    return Entry(value.row, note=f"measured at: {value.at}" if value.at else "")


def _entry(n: Number, text: Callable[[Number], str]) -> Entry:
    if n.word:
        words, _, why = n.word.partition(":")
        return Entry(words, kind=Kind.MUTED, note=why.strip())
    return Entry(text(n), n.value)


def _off(value: Value, three: Three) -> Entry:
    if three.off is None:
        return Entry("")
    note = f"{value.reason} [{value.sure}]" if value.reason else "no reason is known" if value.far else ""
    kind = Kind.BAD if value.far and not value.reason else Kind.PLAIN
    return Entry(apart(three.off), three.off, note=note, kind=kind)


def _notes(values: Sequence[Value]) -> Iterator[str]:
    if any(value.absolute.off is not None or value.ratio.off is not None for value in values):
        yield "off: predicted over published, less one"
    if any(value.expected_here for value in values):
        yield "expected here: the ratio that a roofline of this machine, calibrated, gives at the size measured"


def _by_quantity(figure: Reproduced) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for value in figure.values:
        found.setdefault(value.quantity, []).append(value)
    return found


def _id(quantity: str) -> str:
    return quantity.replace("_", "-").replace(" ", "-")
