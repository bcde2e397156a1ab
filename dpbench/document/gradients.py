"""Who was right, by how much, over which parameters, and what became of every cell that has no figure."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.coverage import NormMethod
from dpbench.document.parts import Column, Entry, Grid, Kind, Section
from dpbench.document.sources import Material
from dpbench.records import Outcome
from dpbench.reporting import palette
from dpbench.reporting.numbers import WORDS, percent
from dpbench.reporting.remarks import named, said_of
from dpbench.rows import Row


def section(material: Material) -> Section | None:
    """Two tables; None where there is no record."""
    if not material.rows:
        return None
    prose = (
        "Before anything is timed, each gradient is held against an explicit loop over the examples: "
        "error is the largest "
        "relative one over the norms and every parameter's clipped sum. Coverage is what got a gradient of what was "
        "asked to be trained. A wrong gradient has no speed anywhere in this report.",
    )
    grids = (_right(material), _without(material))
    return Section("gradients", "The gradients", prose, tuple(grid for grid in grids if grid is not None))


def _right(material: Material) -> Grid:
    lines = []
    for source, rows in material.by_source.items():
        for name in palette.order({row.implementation for row in rows}):
            own = [row for row in rows if row.implementation == name]
            lines.append((*([Entry(source)] if material.several else []), Entry(name), *_line(material, own)))
    columns = [Column("source", numeric=False)] if material.several else []
    columns += [Column("implementation", numeric=False), *(Column(t) for t in ("cells", "checked", "right", "wrong"))]
    columns += [Column("largest error"), Column("allowed"), Column("coverage")]
    columns += [Column(str(method), "of parameters") for method in NormMethod]
    return Grid(
        id="gradients",
        caption="Gradients held against the explicit per-example loop, and how the norms of the parameters were found",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=("shares are over cells, from the smallest to the largest; empty: it does not tell",),
        sources=tuple(material.by_source),
    )


def _line(material: Material, rows: Sequence[Row]) -> list[Entry]:
    checked = [row for row in rows if row.record.parity is not None]
    wrong = [row for row in rows if row.outcome is Outcome.WRONG]
    right = [row for row in checked if row.parity_passed]
    return [
        Entry(str(len(rows)), len(rows)),
        Entry(str(len(checked)), len(checked)),
        Entry(str(len(right)), len(right)),
        Entry(str(len(wrong)), len(wrong), kind=Kind.BAD if wrong else Kind.PLAIN),
        _worst(material, right),
        _allowed(right),
        _share([row.coverage for row in rows if row.outcome is not Outcome.REFUSED]),
        *(_share([getattr(row, method) for row in rows]) for method in NormMethod),
    ]


def _worst(material: Material, right: Sequence[Row]) -> Entry:
    """Of those that are right: how far the others are off stands with their reasons."""
    worst = max(right, key=lambda row: row.parity_error or 0.0, default=None)
    if worst is None or worst.parity_error is None:
        return Entry("-")
    return Entry(f"{worst.parity_error:.1e}", worst.parity_error, material.place(worst), material.label(worst.workload))


def _allowed(right: Sequence[Row]) -> Entry:
    parities = [p for row in right if (p := row.record.parity) is not None]
    limits = sorted({(p.tolerance, p.precision) for p in parities})
    if not limits:
        return Entry("-")
    text = ", ".join(f"{tolerance:.0e} ({precision})" for tolerance, precision in limits[:2])
    return Entry(text + (", ..." if len(limits) > 2 else ""), limits[-1][0])


def _share(shares: Sequence[float | None]) -> Entry:
    known = [share for share in shares if share is not None]
    if not known:
        return Entry("")
    low, high = min(known), max(known)
    text = percent(low) if low == high else f"{percent(low)} to {percent(high)}"
    return Entry(text, low)


def _without(material: Material) -> Grid | None:
    """Every cell that is not ok, and those that trained less than was asked; alike ones in one line."""
    found: dict[tuple[str, str, Outcome, str], list[Row]] = {}
    for row in material.rows:
        if row.outcome is not Outcome.OK or row.partial:
            found.setdefault((row.file, row.implementation, row.outcome, "; ".join(said_of(row))), []).append(row)
    if not found:
        return None
    order = [*list(Outcome)[1:], Outcome.OK]
    lines = []
    for (source, name, outcome, reason), rows in sorted(found.items(), key=lambda item: order.index(item[0][2])):
        bad = outcome.is_failure
        kind = Kind.BAD if bad else Kind.MUTED
        word = "part was trained" if outcome is Outcome.OK else WORDS[outcome]
        labels = list(dict.fromkeys(material.label(row.workload) for row in rows))
        lines.append(
            (
                *([Entry(source)] if material.several else []),
                Entry(name),
                Entry(word, kind=kind),
                Entry(str(len(rows)), len(rows)),
                Entry(named(labels), record=material.place(rows[0])),
                Entry(reason),
            )
        )
    columns = [Column("source", numeric=False)] if material.several else []
    columns += [Column("implementation", numeric=False), Column("outcome", numeric=False), Column("cells")]
    columns += [Column("workloads", numeric=False), Column("reason", numeric=False)]
    return Grid(
        id="without-figure",
        caption="What has no figure, or one of less than the whole work, and why; wrong ones first",
        columns=tuple(columns),
        lines=tuple(lines),
        sources=tuple(dict.fromkeys(key[0] for key in found)),
    )
