"""A report as one page of HTML, which needs no other file and no network: ``report/page/`` is its template.

Its scripts are known to its content security policy by their hashes, so no text of a record can become one.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from dpbench.document.bibtex import bibtex
from dpbench.document.island import columns, island, ranges
from dpbench.document.parts import Chart, Document, Grid
from dpbench.document.swatch import symbol
from dpbench.document.text import legal
from dpbench.document.vector import colours, svg
from dpbench.errors import MissingExtra
from dpbench.reporting.palette import look, on_dark, order
from dpbench.reportpath import find

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = ("dom", "copy", "charts", "tables", "records", "contents")
PAPER = "#ffffff"


def page(document: Document) -> str:
    """The whole page, the same text for the same document.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    environment = templates()
    looks = {name: f"look-{i}" for i, name in enumerate(order(_implementations(document)))}
    symbols = [symbol(identifier, look(name)) for name, identifier in looks.items()]
    parts = [part for section in document.sections for part in section.parts]
    charts = {part.id: svg(part) for part in parts if isinstance(part, Chart)}
    shades = sorted({PAPER}.union(*map(colours, [*symbols, *charts.values()])))
    early = _file("theme.js")
    late = "(() => {\n" + "\n".join(_file(f"{name}.js") for name in SCRIPTS) + "})();\n"
    text = environment.get_template("page.html.j2").render(
        document=document,
        bibtex=bibtex(document.citations),
        looks=looks,
        symbols=symbols,
        charts=charts,
        shades={colour: on_dark(colour) for colour in shades},
        style=_file("page.css") + _file("print.css"),
        early=early,
        late=late,
        hashes=[_hash(early), _hash(late)],
        data={
            "count": len(document.records),
            "columns": columns(document.records),
            "sources": {
                source.id: {
                    "file": source.file,
                    "title": source.title,
                    "command": source.command,
                    "started": source.started,
                    "machine": source.machine,
                    "versions": source.versions,
                }
                for source in document.sources
            },
            "looks": looks,
        },
    )
    return legal(text)


def templates() -> Environment:
    """How pages are made.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("jinja2", "report") from None
    environment = Environment(
        loader=FileSystemLoader(find("page")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(footnotes=_footnotes, island=island, ranges=ranges, taken=_taken)
    environment.tests["chart"] = lambda part: isinstance(part, Chart)
    return environment


def _file(name: str) -> str:
    return find(f"page/{name}").read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _implementations(document: Document) -> set[str]:
    """Whoever has a look of its own in the page."""
    grids = [part for section in document.sections for part in section.parts if isinstance(part, Grid)]
    heads = {column.implementation for grid in grids for column in grid.columns if column.implementation}
    return heads | {record.implementation for record in document.records}


def _footnotes(grid: Grid) -> dict[str, int]:
    """The number of each note of an entry, counted from 1; entries of which the same is said share one."""
    notes = dict.fromkeys(entry.note for line in grid.lines for entry in line if entry.note)
    return {note: i for i, note in enumerate(notes, 1)}


def _taken(part: Grid | Chart) -> list[int]:
    """The records that a table or chart was made from, as far as it says."""
    if isinstance(part, Chart):
        return sorted(set(part.records))
    return sorted({entry.record for line in part.lines for entry in line if entry.record is not None})
