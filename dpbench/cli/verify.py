"""``dpbench verify``: who is right, who refuses, who is silently wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from dpbench.cli.verdicts import block, counts, line
from dpbench.cli.workloads import MODEL, Axes, in_lists, takes
from dpbench.errors import DpbenchError
from dpbench.records import Cell, Workload
from dpbench.sweep import asked, cells_of, check, names

if TYPE_CHECKING:
    from dpbench.conformance.checks import Check
    from dpbench.conformance.verdict import Verdict

SURPRISES = 1
"""Exit code if a verdict is worse, or better, than declared."""
INTERRUPTED = 130


@takes("implementation", "trainable", *MODEL)
def verify(
    axes: Axes,
    case: Annotated[
        list[str] | None, typer.Option("--case", "-c", help="Cases, families or patterns; see: dpbench list cases.")
    ] = None,
    scripts: Annotated[Path, typer.Option(help="Where a script is written for each wrong verdict.")] = Path(
        "results/wrong"
    ),
    processes: Annotated[int | None, typer.Option(help="Checks at a time; default: one per core.", min=1)] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which a check is given up.", min=0.1)] = 120.0,
    everything: Annotated[bool, typer.Option("--all", "-a", help="A line for each check, right ones, too.")] = False,
    declare: Annotated[
        bool, typer.Option("--declare", help="Write what is found into the file beside each implementation.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One verdict a line, and nothing else on stdout.")] = False,
) -> None:
    """Hold implementations against cases with known answers, or against your own model (--model).

    Every check runs in a process of its own, in float64, against an explicit loop over the examples.

    \b
    Exit codes:
      0    every verdict is as declared; where nothing is declared, right
      1    a verdict is worse than declared, or better
      2    a mistake in what was asked
      5    nothing selected
      130  interrupted
    """
    from dpbench.conformance.candidate import Candidate
    from dpbench.conformance.checks import KIT, checks
    from dpbench.conformance.selecting import present, selected
    from dpbench.conformance.verify import Pair
    from dpbench.conformance.verify import verify as verdicts

    workload = workload_of(axes)
    if declare and (case or workload.model != KIT):
        raise DpbenchError("--declare writes down the whole kit; give it neither --case nor --model")
    candidates = {
        name: Candidate.of(name) for name in present(in_lists(axes)["implementation"] or ["all"], names(), say)
    }
    known = checks(workload)
    chosen = {c.name: c for c in selected(known.values(), case) if not c.missing}
    pairs = [Pair(name, c) for name in candidates for c in chosen]
    found: dict[str, dict[str, Verdict]] = {name: {} for name in candidates}
    try:
        for verdict in watched(verdicts(pairs, workload, processes=processes, timeout_s=timeout), len(pairs)):
            who, mine = candidates[verdict.implementation], found[verdict.implementation]
            mine[verdict.check] = verdict
            if as_json:
                typer.echo(line(who, chosen[verdict.check], verdict))
                sys.stdout.flush()
            elif len(mine) == len(chosen):
                ordered = [mine[name] for name in chosen]
                typer.echo(block(who, ordered, everything=everything or len(chosen) <= 12) + "\n")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    everyone = [(candidates[name], [mine[c] for c in chosen]) for name, mine in found.items()]
    if not as_json and len(everyone) > 1:
        typer.echo(counts(everyone))
    _say_missing(selected(known.values(), case))
    if declare:
        for who, verdicts_ in everyone:
            typer.echo(f"declared in {who.declare(verdicts_)}", err=True)
        return
    surprised = [v for who, verdicts_ in everyone for v in verdicts_ if who.surprise(v)]
    _write_scripts([v for _, verdicts_ in everyone for v in verdicts_ if v.ruling == "wrong"], scripts)
    if surprised:
        worse = sum(candidates[v.implementation].is_worse(v) for v in surprised)
        typer.echo(_says(len(surprised), worse), err=True)
        raise typer.Exit(SURPRISES)


def say(text: str) -> None:
    """To people."""
    typer.echo(text, err=True)


def workload_of(axes: Axes) -> Workload:
    """The user's model, built once so that mistakes are one message; without one, what stands for the kit."""
    from dpbench.conformance.checks import KIT
    from dpbench.forkserver import ForkServer

    given = {name: value for name, value in axes.items() if name != "implementation" and value is not None}
    if "model" not in given:
        if given:
            told = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise DpbenchError(f"got {told} without --model, expected a model that has it; the kit's have their own")
        return Workload(model=KIT, batch=1)
    workloads = {c.workload for c in cells_of(asked(None, {**in_lists(given), "batch": [1]}, {}))}
    if len(workloads) > 1:
        raise DpbenchError(f"got {len(workloads)} models or sizes; expected one. Give one value for each option.")
    (workload,) = workloads
    with ForkServer() as server:
        check(server, [Cell("", workload)], 600.0)
    return workload


def watched(verdicts: Iterator[Verdict], total: int) -> Iterator[Verdict]:
    """The same, with a bar on stderr where it is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for verdict in verdicts:
            progress.update(bar, advance=1, description=f"{verdict.implementation}  {verdict.check}")
            yield verdict


def _say_missing(chosen: list[Check]) -> None:
    for c in chosen:
        if c.missing:
            typer.echo(
                f"left out: {c.name} needs {c.needs}, which is not installed; "
                "install it with: pip install 'dpsgd-bench[models]'",
                err=True,
            )


def _write_scripts(wrong: list[Verdict], directory: Path) -> None:
    from dpbench.cases import CASES
    from dpbench.conformance.script import can_show, write

    for verdict in wrong:
        case = CASES.get(verdict.check)
        if case is not None and can_show(case):
            path = write(case, verdict.implementation, verdict, directory)
            typer.echo(f"{verdict.implementation} on {verdict.check}: python {path}", err=True)


def _says(surprised: int, worse: int) -> str:
    better = surprised - worse
    parts = [f"{worse} worse than declared"] * (worse > 0) + [f"{better} better than declared"] * (better > 0)
    remedy = "; if that is meant, --declare writes it down beside the implementation" if worse else ""
    remedy += "; take what is better out of the file beside the implementation" if better else ""
    return f"dpbench: {' and '.join(parts)}{remedy}"
