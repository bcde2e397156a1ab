"""Figures of papers, reproduced: what was printed, what is predicted for that card, and what was measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dpbench.decision import Decision
from dpbench.document.dots import drawn
from dpbench.document.parts import Chart, Column, Entry, Grid, Kind, Section
from dpbench.reporting.decisions import chart
from dpbench.reporting.reproduction import (
    Shown,
    absolute,
    columns,
    is_reduced,
    named,
    settings,
    shares,
    spelt,
    why,
)
from dpbench.reproduction import Reproduced, Reproduction, Value

Records = Mapping[tuple[str, str, str], int]
"""Where a record stands in the report, by the name of its file, its implementation and its workload."""


def sections(reproduction: Reproduction, sources: Mapping[str, str], records: Records) -> Iterator[Section]:
    """One for each figure; ``sources``: the id of a results file in this report, by its name."""
    for figure in reproduction.figures:
        own = tuple(sources[name] for name in figure.files if name in sources)
        on = f" Predicted for: {figure.card}." if figure.kind == "cost" else ""
        where = f"Printed: {figure.printed}. Read: {figure.read}." if figure.printed else "Not printed in this form."
        yield Section(
            id=f"paper-{figure.id}",
            title=figure.title,
            prose=(where + on, *(f"{_begun(said)}." for said in shares([figure]))),
            parts=tuple(_parts(figure, own, records)),
            remarks=tuple(_remarks(figure)),
        )


def _parts(figure: Reproduced, sources: tuple[str, ...], records: Records) -> list[Grid | Chart]:
    """Charts, then tables; where a chart is of one network of many, the table that has them all comes first."""
    charts, grids = list(_charts(figure, sources, records)), list(_grids(figure, sources, records))
    return [*grids, *charts] if figure.layers else [*charts, *grids]


def title(reproduction: Reproduction) -> str:
    """What a report of it is called."""
    return f"Reproduced: {', '.join(paper.id for paper in reproduction.papers)}"


def sentences(reproduction: Reproduction) -> list[str]:
    """How near predictions come to what was printed, of all and of each figure."""
    cited = "; ".join(paper.citation for paper in reproduction.papers)
    figures = reproduction.figures
    made = f"Of {cited}: {len(figures)} of {len(reproduction.asked)} figures are reproduced."
    return [made, *(f"{_begun(said)}." for said in [*shares(figures), *why(figures)])]


def _remarks(figure: Reproduced) -> Iterator[str]:
    yield from (f"{name.capitalize()}: {said}." for name, said in figure.known.items())
    yield from (f"{_begun(said)}." for said in settings(figure))
    if figure.commands:
        yield f"At full size by itself: {'; '.join(figure.commands)}"


def _begun(said: str) -> str:
    return said[:1].upper() + said[1:]


def _charts(figure: Reproduced, sources: tuple[str, ...], records: Records) -> Iterator[Chart]:
    for i, (network, layers) in enumerate(figure.layers.items(), start=1):
        decisions = [Decision.of(*layer) for layer in layers]
        yield Chart(
            id=f"paper-{figure.id}-{i}",
            caption=f"2T² and pd of each layer: {network}",
            draw=partial(chart, decisions, network),
            alt=f"2T^2 and pd over the layers of {network}",
        )
    for quantity, values in _by_quantity(figure).items():
        found = drawn(figure, quantity, values)
        if found is not None:
            places = tuple(dict.fromkeys(p for value in values if (p := _place(value, records)) is not None))
            yield Chart(f"paper-{figure.id}-{_id(quantity)}", found.caption, found.draw, found.caption, sources, places)


def _grids(figure: Reproduced, sources: tuple[str, ...], records: Records) -> Iterator[Grid]:
    for quantity, values in _by_quantity(figure).items():
        chosen = columns(values)
        names = (Column("workload", numeric=False), Column("implementation", numeric=False))
        yield Grid(
            id=f"paper-{figure.id}-{_id(quantity)}",
            caption=f"{figure.title}: {spelt(quantity)}, {values[0].unit}",
            columns=(*names, *(_column(one, values) for one in chosen)),
            lines=tuple(
                (_workload(value), Entry(named(value)), *(_entry(value, one, records) for one in chosen))
                for value in values
            ),
            notes=tuple(_notes(values)),
            sources=sources,
        )


def _column(shown: Shown, values: Sequence[Value]) -> Column:
    bases = {value.relative_to for value in values}
    unit = values[0].unit if shown.of is absolute else f"to {bases.pop()}" if len(bases) == 1 else ""
    reduced = ["reduced size"] if shown.measured and any(map(is_reduced, values)) else []
    said = "" if shown.number is None else ", ".join([*([unit] if unit else []), *reduced])
    return Column(shown.title if shown.of is absolute else f"ratio {shown.title}", said)


def _workload(value: Value) -> Entry:
    return Entry(value.row, note=f"measured at: {value.at}" if is_reduced(value) else "")


def _entry(value: Value, shown: Shown, records: Records) -> Entry:
    text, three = shown.text(value), shown.of(value)
    if shown.number is None:
        note = f"{three.reason} [{three.sure}]" if three.reason else "no reason is known" if three.far else ""
        return Entry(text, three.off, note=note, kind=Kind.BAD if three.far and not three.reason else Kind.PLAIN)
    found = shown.number(value)
    record = _place(value, records) if found and shown.measured else None
    if found.word:
        return Entry(text, record=record, note=found.word.partition(":")[2].strip(), kind=Kind.MUTED)
    return Entry(text, found.value, record=record)


def _place(value: Value, records: Records) -> int | None:
    """Of the record of what was measured."""
    return records.get((value.file, value.implementation, value.cell))


def _notes(values: Sequence[Value]) -> Iterator[str]:
    if any(value.absolute.off is not None or value.ratio.off is not None for value in values):
        yield "off: predicted over published, less one"
    if any(value.expected_here for value in values):
        yield "ratio expected: the ratio that a roofline of this machine, calibrated, gives at the size measured"


def _by_quantity(figure: Reproduced) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for value in figure.values:
        found.setdefault(value.quantity, []).append(value)
    return found


def _id(quantity: str) -> str:
    return quantity.replace("_", "-").replace(" ", "-")
