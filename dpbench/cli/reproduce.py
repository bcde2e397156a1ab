"""``dpbench reproduce``: the figures of papers, published, predicted and measured side by side."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dpbench.cli.said import say
from dpbench.cli.signals import ended_as_interrupted, not_interrupted_again
from dpbench.cli.watch import line_of
from dpbench.errors import DpbenchError
from dpbench.frame import read_all
from dpbench.papers import Figure, Paper, available, chosen, read
from dpbench.records import plain
from dpbench.reporting import threefold
from dpbench.reporting.numbers import duration
from dpbench.reproducing.events import Begun, Event, Progress, Seen
from dpbench.reproduction import Reproduced, Reproduction
from dpbench.reproduction import read as read_reproduction

FAILURES = 3
INTERRUPTED = 130


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE]...", help="Ids of figures, or patterns; default: all.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and stop.")] = False,
    paper: Annotated[
        list[Path] | None, typer.Option(help="Figures of your own paper, a TOML file (also found in ./papers).")
    ] = None,
    card: Annotated[
        str | None, typer.Option(help="Predict for this card in place of the paper's; see: dpbench list cards.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", help="Measure at full size there: cuda. Default: reduced, on the CPU."),
    ] = None,
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Whether anything is run.")] = True,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A directory for all that is made.")] = None,
    resume: Annotated[Path | None, typer.Option(help="The directory of a run that was broken off.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The reproduction as JSON, and nothing else on stdout.")
    ] = False,
) -> None:
    """Rebuild the figures of the BK paper, or of your own: published, predicted for that card, measured here.

    \b
    Exit codes:
      0    done, however far apart the numbers are
      2    a mistake in what was asked
      3    a cell failed, was wrong or timed out
      5    no such figure
      130  interrupted
    """
    wanted = chosen([read(path) for path in [*available(), *(paper or [])]], figures or ())
    if list_:
        typer.echo("\n".join(listed(wanted, as_json)))
        return
    from dpbench.environment import environment
    from dpbench.reproducing.reproduce import Asked, begin
    from dpbench.reproducing.reproduce import reproduce as events

    directory = made(output, resume)
    asked = Asked(
        figures=tuple(wanted),
        directory=directory,
        device=device,
        card=card,
        measured=measure,
        command=f"dpbench {shlex.join(sys.argv[1:])}",
    )
    so_far = read_reproduction(directory) if resume is not None else begin(asked, environment())
    ended_as_interrupted()
    shown = Shown(as_json)
    running = events(asked, so_far)
    try:
        for event in running:
            shown.on(event)
    except KeyboardInterrupt:
        not_interrupted_again()
        running.close()
        say(f"interrupted; go on with: dpbench reproduce --resume {directory}")
        raise typer.Exit(INTERRUPTED) from None
    made_of = read_reproduction(directory)
    shown.end(made_of, directory)
    if not as_json:
        typer.echo(f"report   {page_of(made_of, directory)}")
    if shown.failed:
        raise typer.Exit(FAILURES)


def listed(wanted: list[tuple[Paper, Figure]], as_json: bool) -> list[str]:
    """The figures: how many numbers of each were printed, and what is run for them."""
    if as_json:
        return [json.dumps([{"paper": p.id, **f.model_dump(mode="json")} for p, f in wanted], indent=1)]
    head = ["figure", "numbers", "suites", "title"]
    body = [[f.id, str(f.numbers) if f.numbers else "-", ", ".join(r.suite for r in f.run), f.title] for _, f in wanted]
    lines = ["  ".join(cells).rstrip() for cells in _columns([head, *body])]
    cited = dict.fromkeys(f"{p.id}: {p.citation}" for p, _ in wanted)
    return [*lines, "", *cited]


def _columns(table: list[list[str]]) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in table]


def made(output: Path | None, resume: Path | None) -> Path:
    """The directory that everything is written to."""
    if output is not None and resume is not None:
        raise DpbenchError(f"got --output {output} with --resume {resume}; --resume goes on where it began")
    if resume is not None:
        if not resume.is_dir():
            raise DpbenchError(f"there is no directory {resume}, expected one that dpbench reproduce made")
        return resume
    directory = output or Path("results") / f"reproduce-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DpbenchError(f"cannot make the directory {directory}: {error.strerror}") from None
    return directory


class Shown:
    """What a reader sees of it while it goes on."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.failed = False

    def on(self, event: Event) -> None:
        """Figures on stdout as they are done; everything else on stderr."""
        match event:
            case Begun(figure=figure, number=number, of=of):
                say(f"[{number}/{of}] {figure.title}")
            case Progress(what=what):
                say(f"  {what}")
            case Seen(row=row, number=number, of=of):
                self.failed |= row.outcome.is_failure
                say(f"  [{number:>{len(str(of))}}/{of}] {line_of(row)}   {row.workload.label()}")
            case Reproduced() if not self._as_json:
                typer.echo("\n".join(["", *threefold.lines(event), f"  took {duration(event.seconds)}", ""]))

    def end(self, made: Reproduction, directory: Path) -> None:
        """Shares over all figures, and where everything lies."""
        if self._as_json:
            typer.echo(json.dumps(plain(asdict(made)), indent=1, allow_nan=False))
            return
        typer.echo("\n".join([*threefold.together(made), "", f"results  {directory}"]))


def page_of(made: Reproduction, directory: Path) -> Path:
    """Everything on one page."""
    from dpbench.document.build import build
    from dpbench.document.files import write

    results = read_all(directory) if any(directory.glob("*.jsonl")) else []
    document = build(results, command=made.command, reproduction=made)
    return write(document, directory / "report", ["html"])[0]
