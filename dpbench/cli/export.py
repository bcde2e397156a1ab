"""``dpbench export``: results for other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpbench.cli.files import opened
from dpbench.errors import unknown
from dpbench.reporting.benchmarks import exported
from dpbench.reporting.flat import comma_separated
from dpbench.results import Results


def export(
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="pytest-benchmark, csv.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Results files; without any, the last run."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; without it, stdout.")] = None,
) -> None:
    """Write results for other tools: every column as CSV, or times as pytest-benchmark's JSON.

    \b
    csv               all columns of dpbench.load, a line a cell
    pytest-benchmark  cells with a speed; others are named on stderr
    """
    if to not in FORMATS:
        raise unknown("format", to, FORMATS, "See: dpbench export --help")
    text = FORMATS[to](opened(files))
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


def _as_benchmarks(files: Sequence[Results]) -> str:
    document, left_out = exported(files)
    for cell in left_out:
        typer.echo(f"left out: {cell}", err=True)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Results]], str]] = {"pytest-benchmark": _as_benchmarks, "csv": comma_separated}
