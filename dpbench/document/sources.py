"""Results files as a report refers to them: sources A, B, ..., and rows that know where they were taken from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from dpbench.comparability import differences, hardware_differences, same_hardware
from dpbench.document.labels import Labels, labels
from dpbench.document.parts import Source, Taken
from dpbench.document.standing import Fastest, fastest
from dpbench.errors import EmptySelection
from dpbench.records import SCHEMA, Cell, Record, Workload
from dpbench.results import Results
from dpbench.rows import Row, rows
from dpbench.selection import select

LACKS = {
    1: "which parameters got a gradient by name, what the rounds were like, counts in a trace",
    2: "what the rounds were like, counts in a trace",
}
"""What records of an older schema do not tell."""
MENTIONED = 3
"""Cells, or differences, that a remark names."""
DEFAULTS = {f.name: f.default for f in fields(Workload) if f.default is not MISSING} | {"batch_is_max": False}
NOT_FIGURES = ("file", "workload", "implementation", "outcome")


@dataclass(frozen=True, eq=False)
class Material:
    """What a report is made from. ``rows`` have the id of their source as their file."""

    files: Mapping[str, Results]
    """By the id of the source."""
    sources: tuple[Source, ...]
    rows: tuple[Row, ...]
    missing: tuple[tuple[str, Cell], ...]
    """Cells that were to be run and have no record, with the id of their source."""
    places: Mapping[int, int]
    """Of each record, by its identity: where it stands in :attr:`Document.records`."""
    lines: tuple[int, ...]
    """Of each row, where its record stands in its file."""
    labels: Labels
    of: int
    """Records in the files, of which ``rows`` may be a selection."""
    expression: str = ""
    """What they were selected by."""

    def place(self, row: Row) -> int | None:
        """Where its record stands in :attr:`Document.records`; None where ``-k`` left it out."""
        return self.places.get(id(row.record))

    def places_of(self, rows: Iterable[Row]) -> tuple[int, ...]:
        """Likewise of several, of what is there."""
        return tuple(place for row in rows if (place := self.place(row)) is not None)

    @property
    def several(self) -> bool:
        """Whether a reader has to be told from which source a figure is."""
        return len(self.sources) > 1

    def label(self, workload: Workload) -> str:
        """A workload, as it is called in this report."""
        return self.labels.of[workload]

    def named(self, source: str, workload: Workload) -> str:
        """The same, with its source before it where there are several."""
        return f"{source}: {self.label(workload)}" if self.several else self.label(workload)

    @cached_property
    def by_source(self) -> dict[str, list[Row]]:
        """The rows of each source that has some."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.file, []).append(row)
        return found

    @cached_property
    def groups(self) -> dict[tuple[str, Workload], list[Row]]:
        """Rows that may be compared: of one source and one workload, in their order."""
        found: dict[tuple[str, Workload], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.file, row.workload), []).append(row)
        return found

    @cached_property
    def fastest(self) -> dict[tuple[str, Workload], Fastest]:
        """Of each group in which a private implementation has a speed."""
        return {key: found for key, rows in self.groups.items() if (found := fastest(rows)) is not None}

    def without(self, sources: Collection[str]) -> Material:
        """The same, but no row of these sources; they keep their names."""
        kept = [(row, line) for row, line in zip(self.rows, self.lines, strict=True) if row.file not in sources]
        missing = tuple((source, cell) for source, cell in self.missing if source not in sources)
        rows, lines = tuple(row for row, _ in kept), tuple(line for _, line in kept)
        return replace(self, rows=rows, lines=lines, missing=missing)

    def taken(self) -> tuple[Taken, ...]:
        """Every row as a reader looks it up, numbers to six digits.

        A figure that is not known is left out, and so is an axis that was left at its default, as labels do.
        """
        return tuple(
            Taken(
                source=row.file,
                line=line,
                implementation=row.implementation,
                workload=row.workload.label(),
                outcome=str(row.outcome),
                figures=_figures(row),
            )
            for row, line in zip(self.rows, self.lines, strict=True)
        )


def material(files: Sequence[Results], expression: str = "", baseline: str = "nonprivate") -> Material:
    """What ``files`` hold, narrowed by ``-k``; ratios are taken before, so that a baseline counts that is left out.

    Raises:
        EmptySelection: nothing matches the expression.
    """
    ids = dict(zip(_letters(), files, strict=False))
    every: list[tuple[Row, int]] = []
    for name, results in ids.items():
        lines = results.lines or (0,) * len(results.records)
        every += zip(rows(results, baseline, name), lines, strict=True)
    absent = [(name, cell) for name, results in ids.items() for cell in results.missing]
    of = len(every)
    if expression and not every and not absent:
        raise EmptySelection(f"-k {expression!r} matches nothing: the files hold no cell at all")
    if expression:
        cells = dict.fromkeys([*(row.record.cell for row, _ in every), *(cell for _, cell in absent)])
        chosen = set(select(list(cells), expression))
        every = [(row, line) for row, line in every if row.record.cell in chosen]
        absent = [(name, cell) for name, cell in absent if cell in chosen]
    return Material(
        files=ids,
        sources=tuple(_source(name, results, ids) for name, results in ids.items()),
        rows=tuple(row for row, _ in every),
        missing=tuple(absent),
        places={id(row.record): i for i, (row, _) in enumerate(every)},
        lines=tuple(line for _, line in every),
        labels=labels([*(row.workload for row, _ in every), *(cell.workload for _, cell in absent)]),
        of=of,
        expression=expression,
    )


def sources(ids: Iterable[str]) -> str:
    """``Source A``, or ``Sources A, B``, each once and in their order."""
    found = sorted(set(ids), key=lambda name: (len(name), name))
    return f"Source{'s' if len(found) > 1 else ''} {', '.join(found)}"


def machine(environment: Mapping[str, Any]) -> str:
    """The hardware in one line, as far as it is known."""
    known = environment.get("machine") or {}
    cards = Counter(str(card.get("name")) for card in known.get("gpus") or [])
    parts = [
        str(known["cpu"]) if known.get("cpu") else "",
        f"{known['cores']} cores" if known.get("cores") else "",
        f"{known['memory_gib']} GiB" if known.get("memory_gib") else "",
        *(f"{count} x {card}" if count > 1 else card for card, count in cards.items()),
    ]
    return ", ".join(filter(None, parts)) or "unknown"


def _figures(row: Row) -> dict[str, Any]:
    told = {k: v for k, v in row.flat().items() if k not in NOT_FIGURES and v not in (None, "")}
    return {k: _short(v) for k, v in told.items() if k not in DEFAULTS or v != DEFAULTS[k]}


def _short(value: Any) -> Any:
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


def _letters() -> Iterator[str]:
    """A to Z, then AA, AB, ..."""
    yield from ascii_uppercase
    for first in _letters():
        yield from (first + letter for letter in ascii_uppercase)


def _source(name: str, results: Results, files: Mapping[str, Results]) -> Source:
    header = results.header
    side = header.environment.get("side") or {}
    return Source(
        id=name,
        file=str(results.path),
        title=f"{header.suite} ({side['name']})" if side.get("name") else header.suite,
        command=header.command,
        started=header.started,
        machine=machine(header.environment),
        versions={k: str(v) for k, v in (header.environment.get("versions") or {}).items() if v is not None},
        records=len(results.records),
        missing=len(results.missing),
        remarks=tuple(_remarks(name, results, files)),
    )


def _remarks(name: str, results: Results, files: Mapping[str, Results]) -> Iterator[str]:
    if not results.records:
        yield "there is no record in it"
    if results.schema < SCHEMA:
        lacks = f", which does not tell: {LACKS[results.schema]}" if results.schema in LACKS else ""
        yield f"written in schema {results.schema}{lacks}"
    if results.torn:
        yield results.torn
    if results.missing:
        labels = [f"{c.implementation} on {c.workload.label()}" for c in results.missing]
        yield f"{len(labels)} of {len(results.header.cells)} cells were not run: {_first(labels)}"
    if results.replaced:
        yield f"{results.replaced} records are of cells that were run again: the later record counts"
    first, theirs = next(iter(files.items()))
    if name != first:
        yield from _beside(first, theirs.header.environment, results.header.environment)
    yield from _elsewhere(results.records, results.header.environment)
    cells = {r.cell for r in results.records}
    for other, beside in files.items():
        if other == name:
            break
        if results.header.run and beside.header.run == results.header.run:
            yield f"a side of the same run as {other}, timed in turns with it: see dpbench compare"
        elif again := sum(r.cell in cells for r in beside.records):
            yield f"{again} of its cells are in {other}, too: both are shown, apart"


def _beside(first: str, theirs: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[str]:
    hardware = hardware_differences(theirs, own)
    if not same_hardware(theirs, own):
        told = f": {', '.join(hardware)}" if hardware else ", as far as is known"
        yield f"of another machine than {first}{told}; figures of the two are not compared"
    if found := differences(theirs, own):
        yield f"other software or settings than {first}: {_first(found)}"


def _elsewhere(records: Sequence[Record], home: Mapping[str, Any]) -> Iterator[str]:
    """Records that say of themselves that they were taken with something else than the file's header says."""
    own = [r.environment for r in records if r.environment is not home and r.environment != home and r.environment]
    if own:
        found = [*hardware_differences(home, own[0]), *differences(home, own[0])]
        yield f"{len(own)} records were taken elsewhere than the file says: {_first(found) or 'see there'}"


def _first(texts: Sequence[str]) -> str:
    more = len(texts) - MENTIONED
    return ", ".join(texts[:MENTIONED]) + (f" and {more} more" if more > 0 else "")
