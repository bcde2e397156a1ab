"""``dpbench table``: one figure over the axes of a sweep."""

from __future__ import annotations

from typing import Annotated

import typer

from dpbench.cli.files import opened
from dpbench.errors import unknown
from dpbench.reporting.formats import FORMATS
from dpbench.reporting.table import VALUES, build
from dpbench.selection import SHORT


def table(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Results files; without any, the last run."),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Axes of the rows, for example model,batch. Default: all that vary.")
    ] = None,
    cols: Annotated[str, typer.Option(help="Axes of the columns.")] = "implementation",
    value: Annotated[str, typer.Option(help=f"The figure: {', '.join(VALUES)}.")] = "throughput",
    relative_to: Annotated[
        str | None,
        typer.Option(help="An implementation; figures become ratios to it on the same workload."),
    ] = None,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "text",
) -> None:
    """Arrange one figure of a sweep in a table for people, papers or spreadsheets."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    made = build(opened(files), _axes(rows) if rows else None, _axes(cols), value, relative_to)
    typer.echo(FORMATS[format](made), nl=False)


def _axes(text: str) -> list[str]:
    """``model,B`` as [model, batch]; the short names of labels and ``--impl`` are understood."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [{**SHORT, "impl": "implementation"}.get(name, name.replace("-", "_")) for name in names]
