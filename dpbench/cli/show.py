"""``dpbench show``: what came out of a run."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

from dpbench.cli.files import opened
from dpbench.reporting import summary
from dpbench.results import Results
from dpbench.rows import rows


def show(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Results files; without any, the last run."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: a list of files with their rows.")] = False,
) -> None:
    """Show the results of runs: who was right, how fast, at what memory."""
    results = opened(files)
    if as_json:
        typer.echo(json.dumps([_as_json(r) for r in results], indent=1, allow_nan=False))
        return
    for one in results:
        typer.echo("\n".join(heading(one)) + "\n")
        if sys.stdout.isatty():
            from rich.console import Console

            Console().print(summary.renderable(rows(one)))
        else:
            typer.echo("\n".join(summary.lines(rows(one))))


def heading(results: Results) -> list[str]:
    """What a run was, and what is missing from it."""
    header = results.header
    lines = [f"{results.path}", f"{header.suite}, started {header.started}: {header.command}"]
    if results.missing:
        lines.append(
            f"{len(results.records)} of {len(header.cells)} cells done; go on with: dpbench run --resume {results.path}"
        )
    return lines


def _as_json(results: Results) -> dict[str, Any]:
    header = results.header
    return {
        "file": str(results.path),
        "suite": header.suite,
        "command": header.command,
        "started": header.started,
        "environment": header.environment,
        "missing": [{"implementation": c.implementation, "workload": c.workload.label()} for c in results.missing],
        "rows": [{k: _finite(v) for k, v in row.flat().items()} for row in rows(results)],
    }


def _finite(value: Any) -> Any:
    """JSON has no numbers for what is not finite."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
