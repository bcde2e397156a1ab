"""``dpbench run``: measure a suite, or what the options say."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbench.cli.said import told
from dpbench.cli.signals import ended_as_interrupted, not_interrupted_again
from dpbench.cli.watch import Watch, watch
from dpbench.cli.workloads import OPTIONS, Axes, in_lists, takes, timing
from dpbench.errors import DpbenchError
from dpbench.records import Cell, Record
from dpbench.runner import Event
from dpbench.suite import Suite
from dpbench.sweep import Started, asked, cells_of, resumed, sweep

FAILURES = 3
"""Exit code if a cell failed, was wrong or timed out."""
INTERRUPTED = 130

course = partial(typer.Option, rich_help_panel="Course of the run")


@takes(*OPTIONS)
def run(
    axes: Axes,
    suite: Annotated[str | None, typer.Argument(help="A suite's name or file; see: dpbench list suites.")] = None,
    rounds: Annotated[int | None, timing(help="Fresh processes that time; 6 or more give intervals.")] = None,
    memory: Annotated[str | None, timing(help="What a step may take at --batch max: 40GB; of a card, all.")] = None,
    budget: Annotated[float | None, timing(help="Seconds of timing per implementation and round.")] = None,
    timeout: Annotated[float | None, timing(help="Seconds after which a cell is given up.")] = None,
    measure: Annotated[
        str | None, timing(help="What is taken: traced, memory, seconds; the gradient is checked.")
    ] = None,
    select: Annotated[str | None, course("-k", help="Only cells that match: 'bk and not B=8'.")] = None,
    dry_run: Annotated[bool, course("--dry-run", help="Print the cells and stop.")] = False,
    as_json: Annotated[bool, course("--json", help="One record a line on stdout, and nothing else.")] = False,
    resume: Annotated[Path | None, course(help="A results file: measure what is missing from it.")] = None,
    recheck: Annotated[bool, course("--recheck", help="Check every gradient anew in every cell.")] = False,
    results: Annotated[Path, course(help="Directory of the results.")] = Path("results"),
) -> None:
    """Measure a suite, or a sweep given by options: gradients checked first, then memory and speed.

    \b
    Exit codes:
      0    all measured; refusals and running out of memory are results
      2    a mistake in what was asked
      3    a cell failed, was wrong or timed out
      5    nothing selected
      130  interrupted
    """
    settings = {
        "rounds": rounds,
        "budget_s": budget,
        "timeout_s": timeout,
        "memory": memory,
        "measure": None if measure is None else [name.strip() for name in measure.split(",")],
    }
    what, cells = chosen(suite, in_lists(axes), settings, select, resume)
    if dry_run:
        print_cells(cells)
        return
    command = f"dpbench {shlex.join(sys.argv[1:])}"
    ended_as_interrupted()
    with watch(as_json) as shown:
        events = sweep(what, cells, command=command, directory=results, resume=resume, recheck=recheck, say=shown.say)
        try:
            failed = follow(events, shown)
        except KeyboardInterrupt:
            not_interrupted_again()
            events.close()
            shown.interrupted()
            raise typer.Exit(INTERRUPTED) from None
    if failed:
        raise typer.Exit(FAILURES)


def chosen(
    suite: str | None, axes: dict[str, Any], settings: dict[str, Any], select: str | None, resume: Path | None
) -> tuple[Suite, list[Cell]]:
    """The suite and the cells that the options ask for, or those of the file that is resumed."""
    given = any(v is not None for v in (suite, select, *axes.values(), *settings.values()))
    if resume is not None and not given:
        return resumed(resume)
    if resume is not None and suite is None and axes["model"] is None:
        raise DpbenchError(
            f"got --resume {resume} with other options; give --resume FILE alone, which goes on as it began, "
            "or the whole command of that run together with it"
        )
    if suite is None and axes["model"] is None:
        raise DpbenchError("nothing to run: give a suite (dpbench run quickstart) or --model and --batch; see --help")
    what = asked(suite, axes, settings)
    return what, cells_of(what, select)


def follow(events: Iterable[Started | Event], shown: Watch) -> bool:
    """Show everything; whether a cell failed, was wrong or timed out.

    Where no one can be shown anything any more (the pipe is closed, the disk behind stdout is full), the
    run goes on: its records are in the file.
    """
    failed, heard = False, True
    for event in events:
        records = event.done if isinstance(event, Started) else [event]
        failed |= any(isinstance(r, Record) and r.outcome.is_failure for r in records)
        heard = heard and told(shown.on, event)
    if heard:
        told(shown.end)
    return failed


def print_cells(cells: list[Cell]) -> None:
    """What would be run."""
    for cell in cells:
        typer.echo(f"{cell.implementation:22} {cell.workload.label()}")
    sys.stdout.flush()
    typer.echo(f"{len(cells)} cells", err=True)
