"""Figures of papers, reproduced: what was printed, what is predicted for that card, and what was measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dpbench.document import threefold
from dpbench.document.parts import Chart, Column, Entry, Grid, Kind, Section
from dpbench.reporting.decisions import Decision, chart
from dpbench.reporting.threefold import apart, named, notes, number, shares, shown
from dpbench.reproduction import Number, Reproduced, Reproduction, Three, Value


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


def sentences(reproduction: Reproduction) -> list[str]:
    """How near predictions come to what was printed."""
    cited = "; ".join(paper.citation for paper in reproduction.papers)
    values = [value for figure in reproduction.figures for value in figure.values]
    return [f"Reproduced, {len(reproduction.figures)} figures beside {cited}.", *(f"{s}." for s in shares(values))]


def _prose(figure: Reproduced) -> Iterator[str]:
    if figure.printed:
        yield f"Printed: {figure.printed}. Read: {figure.read}. Predicted for: {figure.card}."
    else:
        yield f"Not printed by the paper in this form. Predicted for: {figure.card}."
    yield from (f"{name.capitalize()}: {said}." for name, said in figure.known.items())
    yield from (f"{said[0].upper()}{said[1:]}." for said in notes(figure))
    if figure.commands:
        yield f"By itself, at full size: {'; '.join(figure.commands)}"


def _charts(figure: Reproduced, sources: tuple[str, ...]) -> Iterator[Chart]:
    for i, (network, layers) in enumerate(figure.layers.items(), start=1):
        decisions = [Decision(str(name), 2 * int(T) ** 2, int(d) * int(p)) for name, T, d, p in layers]
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
        unit = values[0].unit
        relative = any(value.ratio != Three() for value in values)
        columns = [Column("workload", numeric=False), Column("implementation", numeric=False)]
        columns += [Column(name, unit) for name in ("published", "predicted", "measured here")]
        columns += [Column("off")] if not relative else []
        if relative:
            to = "nonprivate" if any(v.relative_to == "nonprivate" for v in values) else values[0].relative_to
            columns += [Column(name, f"to {to}") for name in ("ratio published", "ratio predicted")]
            columns += [Column("off"), Column("ratio measured"), Column("expected here")]
        yield Grid(
            id=f"paper-{figure.id}-{_id(quantity)}",
            caption=f"{figure.title}: {quantity.replace('_', ' ')}, {unit}",
            columns=tuple(columns),
            lines=tuple(_line(value, relative) for value in values),
            notes=tuple(_notes(values)),
            sources=sources,
        )


def _line(value: Value, relative: bool) -> tuple[Entry, ...]:
    absolute, ratios = value.absolute, value.ratio
    entries = [Entry(value.row, note=f"measured at: {value.at}" if value.at else ""), Entry(named(value))]
    entries += [_entry(n, number(n)) for n in (absolute.published, absolute.predicted, absolute.measured)]
    if relative:
        entries += [_entry(n, shown(n)) for n in (ratios.published, ratios.predicted)]
        entries += [_off(value, ratios), _entry(ratios.measured, shown(ratios.measured))]
        entries += [_entry(value.expected_here, shown(value.expected_here))]
    else:
        entries += [_off(value, absolute)]
    return tuple(entries)


def _entry(n: Number, text: str) -> Entry:
    if n.word:
        words, _, why = n.word.partition(":")
        return Entry(words, kind=Kind.MUTED, note=why.strip())
    return Entry(text, n.value)


def _off(value: Value, three: Three) -> Entry:
    if three.off is None:
        return Entry("")
    note = f"{value.reason} [{value.sure}]" if value.reason else "no reason is known" if value.far else ""
    kind = Kind.BAD if value.far and not value.reason else Kind.PLAIN
    return Entry(apart(three.off), three.off, note=note, kind=kind)


def _notes(values: Sequence[Value]) -> Iterator[str]:
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
