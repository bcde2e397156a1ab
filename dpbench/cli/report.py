"""``dpbench report``: results as a page, and as files for a paper."""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpbench.cli.files import opened
from dpbench.cli.said import say
from dpbench.document.files import FORMATS, PAGE, TEXT, formats, write
from dpbench.document.parts import Chart, Document
from dpbench.errors import DpbenchError
from dpbench.reproduction import FILE, Reproduction, read
from dpbench.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATIENCE = 1.0
"""Seconds after which it is said what is being done, and again each time."""


def report(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...", help="Results, directories of them, or a reproduction; default: the last run."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Default: NAME-report beside one file, report beside several."
        ),
    ] = None,
    formats_: Annotated[
        str, typer.Option("--formats", metavar="LIST", help=f"Of {', '.join(FORMATS)}, with commas.")
    ] = "html",
    expression: Annotated[
        str, typer.Option("-k", metavar="EXPR", help="Of the cells those that match, for example 'gpt2 and not B=8'.")
    ] = "",
    title: Annotated[str, typer.Option(help="Of the report.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written, and the summary, as JSON.")] = False,
) -> None:
    """Make a report of results: tables and charts, a summary, and the methods for a paper.

    \b
    html         index.html, one page with everything
    md           report.md
    latex        latex/*.tex, a file for each table, one for the methods, report.tex with all; references.bib
    svg png pdf  charts/*

    \b
    Exit codes:
      0  written
      2  a mistake in what was asked, or a file that cannot be read or written
      5  -k matches nothing
    """
    from dpbench.document.build import build

    chosen = formats(formats_)
    results, reproduction = gathered(files)
    directory = output or beside(results, files)
    document = build(results, title, expression, shlex.join(["dpbench", *sys.argv[1:]]), reproduction)
    with warnings.catch_warnings():
        # A page shows such a character in a font of its reader's.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        written = write(told(document, say), directory, chosen)
    if as_json:
        typer.echo(json.dumps(_as_json(document, directory, written), indent=1))
        return
    for path in written:
        typer.echo(path)
    typer.echo(opening(written))


def gathered(files: Sequence[str] | None) -> tuple[list[Results], Reproduction | None]:
    """The results of what was named, and the reproduction among it: its file, or the directory that has one.

    Raises:
        DpbenchError: several reproductions, or what cannot be read.
    """
    every = [path for name in files or () if (path := _reproduction(Path(name))) is not None]
    found = list({path.resolve(): path for path in every}.values())
    if len(found) > 1:
        raise DpbenchError(f"got {len(found)} reproductions ({', '.join(map(str, found))}), expected one in a report")
    if not found:
        return opened(files), None
    others = [name for name in files or () if _reproduction(Path(name)) is None]
    own = [str(found[0].parent)] if any(found[0].parent.glob("*.jsonl")) else []
    return (opened([*own, *others]) if own or others else []), read(found[0])


def _reproduction(path: Path) -> Path | None:
    path = path / FILE if path.is_dir() else path
    return path if path.name == FILE and path.is_file() else None


def beside(files: Sequence[Results], named: Sequence[str] | None = None) -> Path:
    """Where a report lies when nothing is said: beside the results that it is made from, or in a reproduction."""
    for name in named or ():
        if (reproduction := _reproduction(Path(name))) is not None:
            return reproduction.parent / "report"
    first = files[0].path
    return first.with_name(f"{first.stem}-report" if len(files) == 1 else "report")


def opening(written: Sequence[Path]) -> str:
    """How to look at it."""
    first = next((path for name in (PAGE, TEXT) for path in written if path.name == name), None)
    if first is None:
        return f"{len(written)} files; nothing but these was asked for (--formats)" if written else "no file was made"
    program = "less" if first.name == TEXT else "open" if sys.platform == "darwin" else "xdg-open"
    return f"open it with: {program} {shlex.quote(str(first))}"


def told(document: Document, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Document:
    """The same, whose charts say which of them is being drawn, where that takes long; again for each format."""
    charts = [part for section in document.sections for part in section.parts if isinstance(part, Chart)]
    places = {chart.id: place for place, chart in enumerate(charts, start=1)}
    said = [clock()]

    def watched(chart: Chart) -> Callable[[], Figure]:
        def draw() -> Figure:
            if clock() - said[0] > PATIENCE:
                say(f"drawing chart {places[chart.id]} of {len(charts)}")
                said[0] = clock()
            return chart.draw()

        return draw

    def of(part: Any) -> Any:
        return replace(part, draw=watched(part)) if isinstance(part, Chart) else part

    sections = tuple(replace(section, parts=tuple(map(of, section.parts))) for section in document.sections)
    return replace(document, sections=sections)


def _as_json(document: Document, directory: Path, written: Sequence[Path]) -> dict[str, Any]:
    return {
        "title": document.title,
        "directory": str(directory),
        "files": [str(path) for path in written],
        "facts": dict(document.facts),
        "summary": list(document.summary),
        "methods": list(document.methods),
        "sources": [
            {"id": s.id, "file": s.file, "records": s.records, "missing": s.missing, "remarks": list(s.remarks)}
            for s in document.sources
        ],
    }
