"""A report as one Markdown file, with pipe tables as GitHub shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpbench.document.footnotes import Footnotes
from dpbench.document.parts import Chart, Document, Grid, Kind, Section

_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~"})


def markdown(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report; ``pictures``: the file of each chart, by its id, from where this is written to."""
    blocks = [f"# {escape(document.title)}", f"*{escape(document.made)}*"]
    blocks.append("\n".join(f"- {escape(name)}: {escape(said)}" for name, said in document.facts.items()))
    blocks += ["## Summary", "\n".join(f"- {escape(sentence)}" for sentence in document.summary)]
    for section in document.sections:
        blocks += _section(section, pictures or {})
    blocks += ["## Methods", *map(escape, document.methods)]
    if document.citations:
        blocks.append("\n".join(f"- {escape(str(paper))}" for paper in document.citations))
    blocks.append("## Sources")
    for source in document.sources:
        versions = ", ".join(f"{name} {version}" for name, version in source.versions.items())
        said = [
            f"**{source.id}**: {code(source.file)}, {escape(source.title)}, {source.records} records, "
            f"started {source.started}",
            f"command: {code(source.command)}",
            f"machine: {escape(source.machine)}",
            *([f"versions: {escape(versions)}"] if versions else []),
            *(f"note: {escape(remark)}" for remark in source.remarks),
        ]
        blocks.append("- " + "\n  - ".join(said))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"## {escape(section.title)}"
    yield from map(escape, section.prose)
    for part in section.parts:
        if isinstance(part, Grid):
            yield from table(part)
        elif part.id in pictures:
            yield f"![{escape(part.alt)}](<{pictures[part.id]}>)"
            yield _under(part)
        else:
            yield f"{_under(part)} (not drawn here: add svg or png to --formats)"
    yield from map(escape, section.remarks)


def _under(chart: Chart) -> str:
    return f"*{escape(chart.caption)}*"


def table(grid: Grid) -> Iterator[str]:
    """Caption, table, notes; what is best is bold, what is bad struck by no one and in words."""
    notes = Footnotes()
    head = [f"{column.title} ({column.unit})" if column.unit else column.title for column in grid.columns]
    body = []
    for entries in grid.lines:
        cells = []
        for entry in entries:
            text = escape(entry.text)
            mark = f" [{notes.number(entry.note)}]" if entry.note else ""
            cells.append((f"**{text}**" if entry.kind is Kind.BEST and text else text) + mark)
        body.append(cells)
    rule = ["---:" if column.numeric else "---" for column in grid.columns]
    yield f"**{escape(grid.caption)}**"
    yield "\n".join(_line(cells) for cells in [list(map(escape, head)), rule, *body])
    said = [*(f"[{i}] {escape(note)}" for i, note in notes), *map(escape, grid.notes)]
    if said:
        yield "  \n".join(said)


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_SPECIAL)


def code(text: str) -> str:
    """Text as code, with as many backticks around it as it needs."""
    text = " ".join(text.split())
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`" if text else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
