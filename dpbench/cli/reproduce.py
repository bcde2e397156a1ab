"""``dpbench reproduce``: the figures of papers, published, predicted and measured side by side."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dpbench.cli.said import say, told
from dpbench.cli.signals import ended_as_interrupted, not_interrupted_again
from dpbench.cli.watch import line_of
from dpbench.errors import DpbenchError
from dpbench.frame import read_all as read_results
from dpbench.paper import Figure, Paper
from dpbench.papers import available, chosen, read_all
from dpbench.records import plain
from dpbench.reporting import reproduction as shown_as
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration
from dpbench.reproducing.events import Begun, Event, Progress, Seen
from dpbench.reproduction import FILE, Reproduced, Reproduction, how_to_go_on, read
from dpbench.results import Results

FAILURES = 3
INTERRUPTED = 130


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE]...", help="Ids of figures, or patterns; default: all.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and stop.")] = False,
    paper: Annotated[
        list[Path] | None,
        typer.Option(help="Your own paper, a TOML file; without FIGURE all of its figures, and no others."),
    ] = None,
    card: Annotated[
        str | None, typer.Option(help="Predict for this card in place of the paper's; see: dpbench list cards.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", help="Measure at full size there: cuda. Default: reduced, on the CPU."),
    ] = None,
    measure: Annotated[
        bool | None, typer.Option("--measure/--no-measure", help="Whether anything is run.", show_default="measure")
    ] = None,
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
      2    a mistake in what was asked, or something cannot be written
      3    a cell failed, was wrong or timed out
      5    no such figure
      130  interrupted
    """
    directory, so_far = place(output, resume)
    named = [*(paper or ()), *(Path(p.file) for p in (so_far.papers if so_far else ()) if p.file)]
    files = available(named)
    found = read_all(files)
    mine = {path.resolve() for path in paper or ()}
    own = [f"{p.id}/*" for p, path in zip(found, files, strict=True) if path.resolve() in mine]
    wanted = chosen(found, figures or (so_far.asked if so_far else own))
    if list_:
        typer.echo("\n".join(listed(wanted, as_json)))
        return
    from dpbench.document.page import templates
    from dpbench.environment import environment
    from dpbench.reproducing.begun import Asked, go_on
    from dpbench.reproducing.running import reproduce as events

    asked = Asked(
        figures=tuple(wanted),
        directory=directory,
        device=device,
        card=card,
        measured=measure,
        command=f"dpbench {shlex.join(sys.argv[1:])}",
        files={p.id: str(path.resolve()) for p, path in zip(found, files, strict=True) if path in named},
    )
    where = environment()
    if so_far is not None:
        asked = go_on(asked, so_far, where)
    if not as_json:
        # Now, and not when everything has been measured.
        templates()
    ended_as_interrupted()
    running = events(asked, where)
    try:
        follow(running, Shown(as_json))
        failed = ended(directory, as_json)
    except KeyboardInterrupt:
        not_interrupted_again()
        running.close()
        say(f"interrupted; {how_to_go_on(directory) if (directory / FILE).is_file() else 'nothing was begun'}")
        raise typer.Exit(INTERRUPTED) from None
    if failed:
        raise typer.Exit(FAILURES)


def follow(events: Iterable[Event], shown: Shown) -> None:
    """Show everything. Where no one can be shown anything any more, it goes on: figures are kept as they are made."""
    heard = True
    for event in events:
        heard = heard and told(shown.on, event)


def ended(directory: Path, as_json: bool) -> bool:
    """Say what came of it, and make the page; whether a cell failed, was wrong or timed out, then or before."""
    made = read(directory)
    results = read_results(directory) if any(directory.glob("*.jsonl")) else []
    failed = any(record.outcome.is_failure for one in results for record in one.records)
    if as_json:
        typer.echo(json.dumps(plain(asdict(made)), indent=1, allow_nan=False))
        return failed
    typer.echo("\n".join([*shown_as.together(made), "", f"results  {directory}"]))
    try:
        typer.echo(f"report   {page_of(made, results, directory)}")
    except DpbenchError as error:
        if not failed:
            raise
        # That a cell failed is not to be lost behind it.
        say(str(error))
    return failed


def listed(wanted: list[tuple[Paper, Figure]], as_json: bool) -> list[str]:
    """The figures: how many numbers of each were printed, and what is run for them."""
    if as_json:
        return [json.dumps([{"paper": p.id, **f.model_dump(mode="json")} for p, f in wanted], indent=1)]
    head = ["figure", "numbers", "suites", "title"]
    body = [[f.id, str(f.numbers) if f.numbers else "-", ", ".join(r.suite for r in f.run), f.title] for _, f in wanted]
    lines = aligned([head, *body], left=len(head))
    cited = dict.fromkeys(f"{p.id}: {p.citation}" for p, _ in wanted)
    return [*lines, "", *cited]


def place(output: Path | None, resume: Path | None) -> tuple[Path, Reproduction | None]:
    """The directory that everything is written to, and what it holds of a run that was broken off."""
    if output is not None and resume is not None:
        raise DpbenchError(f"got --output {output} with --resume {resume}; --resume goes on where it began")
    if resume is not None:
        if not resume.is_dir():
            raise DpbenchError(f"there is no directory {resume}, expected one that dpbench reproduce made")
        return resume, read(resume)
    return output or Path("results") / f"reproduce-{datetime.now(UTC):%Y%m%dT%H%M%SZ}", None


class Shown:
    """What a reader sees of it while it goes on."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def on(self, event: Event) -> None:
        """Figures on stdout as they are done; everything else on stderr."""
        match event:
            case Begun(figure=figure, number=number, of=of):
                say(f"[{number}/{of}] {figure.title}")
            case Progress(what=what):
                say(f"  {what}")
            case Seen(row=row, number=number, of=of):
                say(f"  [{number:>{len(str(of))}}/{of}] {line_of(row)}   {row.workload.label()}")
            case Reproduced() if not self._as_json:
                typer.echo("\n".join(["", *shown_as.lines(event), f"  took {duration(event.seconds)}", ""]))


def page_of(made: Reproduction, results: Sequence[Results], directory: Path) -> Path:
    """Everything on one page."""
    from dpbench.document.build import build
    from dpbench.document.files import write

    document = build(results, command=made.command, reproduction=made)
    return write(document, directory / "report", ["html"])[0]
