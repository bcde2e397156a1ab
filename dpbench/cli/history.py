"""``dpbench history``: how cells did from run to run, where they changed, and what else changed there."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from dpbench.changepoints import LEVEL
from dpbench.cli.files import drawable, opened
from dpbench.errors import EmptySelection
from dpbench.figures import FIGURES
from dpbench.history import history as of
from dpbench.history import started
from dpbench.reporting import trends
from dpbench.results import Results


def history(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Results files of many runs, in any order.")],
    value: Annotated[str, typer.Option(help=f"The figure: {', '.join(FIGURES)}.")] = "seconds",
    relative_to: Annotated[
        str | None,
        typer.Option(
            help="An implementation; figures become ratios to it within each run. none: no ratios. "
            "Seconds are relative to nonprivate where every file has it."
        ),
    ] = None,
    select: Annotated[str, typer.Option("-k", help="Only cells that match, for example 'bk and not B=8'.")] = "",
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only runs of this day (UTC) and later.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="Chance of a change in a cell that has none.", min=1e-4, max=0.2)
    ] = LEVEL,
    plot: Annotated[Path | None, typer.Option(help="Draw a panel for each cell, as .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: a list of cells.")] = False,
) -> None:
    """Follow every cell through many runs: where it got slower, by how much, and what else changed there.

    \b
    Exit codes:
      0  shown, whatever changed
      2  a mistake in what was asked
      5  no run or no cell was selected
    """
    if plot is not None:
        drawable(plot)
    found = of(_since(opened(files), since), value, relative_to, select, level)
    if as_json:
        typer.echo(json.dumps([trends.as_object(s, found) for s in found.series], indent=1, allow_nan=False))
    else:
        unicode = sys.stdout.isatty() and (sys.stdout.encoding or "").lower().startswith("utf")
        typer.echo("\n".join(trends.lines(found, unicode)))
    if plot is not None:
        from dpbench.reporting.trendplots import write

        write(found, plot)
        typer.echo(f"{plot} written", err=True)


def _since(results: list[Results], day: datetime | None) -> list[Results]:
    if day is None:
        return results
    left = [r for r in results if f"{started(r):%Y-%m-%d}" >= f"{day:%Y-%m-%d}"]
    if not left:
        last = max(started(r) for r in results)
        raise EmptySelection(f"--since {day:%Y-%m-%d}: the last of {len(results)} runs is of {last:%Y-%m-%d}")
    return left
