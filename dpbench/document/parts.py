"""What a report consists of: sections of prose, tables and charts, each with the records that it was made from.

Nothing here knows a format: an exporter (page, Markdown, LaTeX, pictures) writes the same document its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpbench.document.works import Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Kind(StrEnum):
    """How an entry of a table is set off."""

    PLAIN = ""
    BEST = "best"
    MUTED = "muted"
    """Nothing is claimed: refused, out of memory, not run."""
    BAD = "bad"
    """Wrong, failed, timed out, or far from what was expected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in a table."""

    text: str
    value: float | None = None
    """What a column is sorted by; None: the text."""
    record: int | None = None
    """The record that it was taken from, by its place in :attr:`Document.records`."""
    note: str = ""
    """What has to be said of it."""
    kind: Kind = Kind.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    unit: str = ""
    numeric: bool = True
    implementation: str = ""
    """Whose it is, where it is one implementation's; it has that one's colour."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table, which sorts and filters in the page."""

    id: str
    """Of lower-case letters, digits and hyphens; the name of its file, too."""
    caption: str
    columns: tuple[Column, ...]
    lines: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """The ids of the sources that it was made from."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, drawn when an exporter asks for it."""

    id: str
    caption: str
    draw: Callable[[], Figure]
    alt: str = ""
    """What it shows, in words, for who does not see it."""
    sources: tuple[str, ...] = ()
    records: tuple[int, ...] = ()
    """Those that are drawn, by their place in :attr:`Document.records`."""


@dataclass(frozen=True, slots=True)
class Section:
    """One question and what answers it."""

    id: str
    title: str
    prose: tuple[str, ...] = ()
    """Paragraphs of plain text."""
    parts: tuple[Grid | Chart, ...] = ()
    remarks: tuple[str, ...] = ()
    """Paragraphs for who asks how it was made: they follow the parts, and are folded where a format can."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that figures come from: who made it, when, on what."""

    id: str
    """``A``, ``B``, ...: how the report refers to it."""
    file: str
    title: str
    command: str
    started: str
    machine: str
    """In one line."""
    versions: Mapping[str, str]
    records: int
    missing: int = 0
    """Cells that it was to have and lacks."""
    remarks: tuple[str, ...] = ()
    """What a reader has to know of it: an older schema, a torn last line, another machine than the others."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One record, as a reader looks it up: whence it came, and every figure of it by name."""

    source: str
    """The id of its file."""
    line: int
    """In that file, counted from 1; 0 where that is not known."""
    implementation: str
    workload: str
    outcome: str
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    made: str
    """By which dpbench, from which command, when (ISO 8601, UTC)."""
    summary: tuple[str, ...]
    """Sentences made from the numbers."""
    methods: tuple[str, ...]
    """Paragraphs ready for a paper."""
    citations: tuple[Work, ...]
    sections: tuple[Section, ...]
    sources: tuple[Source, ...]
    records: tuple[Taken, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """What stands in the head of the page: counts of cells by outcome, machines, dates."""
