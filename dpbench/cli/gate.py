"""``dpbench gate``: may this change pass?"""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from dpbench.ab import Compared, ab, pairs_of
from dpbench.beside import beside, lost, refuse_absolute
from dpbench.change import Change, Verdict, verdicts
from dpbench.cli.both import controls, watched
from dpbench.cli.files import narrowed
from dpbench.cli.run import INTERRUPTED
from dpbench.cli.signals import ended_as_interrupted, not_interrupted_again
from dpbench.cli.watch import line_of
from dpbench.comparability import library_differences
from dpbench.comparison import compare, differences
from dpbench.errors import DpbenchError
from dpbench.gate import FAILED, Ruling, blamed_on_versions, judge, seen_once
from dpbench.records import Record
from dpbench.reporting import changes as reporting
from dpbench.reporting import github
from dpbench.results import read
from dpbench.rows import rows
from dpbench.rules import Rules
from dpbench.rules import rules as configured
from dpbench.selection import parse
from dpbench.store import accept as accepted
from dpbench.suite import Suite, load
from dpbench.sweep import Started, cells_of, sweep
from dpbench.worktree import worktree


def gate(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="In place of those of the rules.")
    ] = None,
    base: Annotated[str | None, typer.Option("--base", help="A git reference, or a results file (.jsonl).")] = None,
    select: Annotated[str | None, typer.Option("-k", help="Only cells that match: 'bk and not B=8'.")] = None,
    fail_on: Annotated[str | None, typer.Option(help="Verdicts that do not pass besides: faster, less, ...")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of timing, in place of that of the rules.", min=1)] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Measure, and write it as the base, a results file.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The ruling as an object, and nothing else on stdout.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Directory of the results.")] = Path("results"),
) -> None:
    """Hold this source tree against a base: gradients, coverage, counted FLOPs and bytes, memory, time.

    The rules are the table tool.dpbench.gate of pyproject.toml; dpbench init writes a start. A git reference as the
    base is run beside this tree, with the same libraries; a results file is what was accepted before.

    \b
    Exit codes:
      0    passes
      1    does not pass
      2    a mistake in what was asked
      3    a cell failed unexpectedly
      4    inconclusive where that is to fail, or not comparable
      5    nothing selected
      130  interrupted
    """
    asked = configured()
    rules = asked.model_copy(update={k: v for k, v in (("rounds", rounds), ("suite", suites), ("base", base)) if v})
    if rules.base is None:
        raise DpbenchError(
            "there is no base: give --base REF (origin/main, HEAD~1) or --base FILE.jsonl, or write base = ... into "
            "[tool.dpbench.gate] of pyproject.toml"
        )
    wanted = verdicts([*rules.fail_on, *(fail_on or "").split(",")])
    chosen = [_suite(name, rules) for name in rules.suite]
    if rules.rounds < rules.min_rounds and any("seconds" in suite.measure for suite in chosen):
        raise DpbenchError(f"rounds is {rules.rounds}, expected at least min_rounds, which is {rules.min_rounds}")
    ended_as_interrupted()
    if not rules.base.endswith(".jsonl"):
        if accept:
            raise DpbenchError(f"--accept writes a results file, and the base is {rules.base}; give --base FILE.jsonl")
        found = _against_reference(chosen, rules, rules.base, select, results)
    elif len(chosen) > 1:
        raise DpbenchError(f"a results file is the base of one suite, got {', '.join(rules.suite)}; name one of them")
    elif accept:
        if select:
            raise DpbenchError("--accept writes all cells of a suite; leave -k out")
        made = read(measured(chosen[0], None, results))
        if any(r.outcome.is_failure for r in made.records):
            typer.echo(f"not accepted: cells of {made.path} failed, were wrong or timed out", err=True)
            raise typer.Exit(FAILED)
        typer.echo(f"accepted: {accepted(made, rules.base)}", err=True)
        return
    else:
        found = _against_file(chosen[0], rules, Path(rules.base), select, results)
    ruling = judge(found.changes, found.records, rules, wanted)
    tell(found, ruling, rules.min_effect, as_json)
    raise typer.Exit(ruling.exit_code)


@dataclass(frozen=True, slots=True)
class Found:
    """What was compared."""

    title: str
    changes: list[Change]
    records: list[Record]
    """Of the new side."""
    pairs: list[Compared] = field(default_factory=list)
    """Where both sides were timed in turns."""


def _suite(name: str, rules: Rules) -> Suite:
    suite = load(name)
    measure = tuple(dict.fromkeys(["traced", *suite.measure]))
    return replace(suite, measure=measure, rounds=rules.rounds if "seconds" in measure else suite.rounds)


def _against_reference(chosen: list[Suite], rules: Rules, reference: str, select: str | None, results: Path) -> Found:
    from dpbench.environment import environment

    changes: list[Change] = []
    pairs: list[Compared] = []
    here = Path.cwd().resolve()
    with worktree(reference) as tree:
        before, after = beside(reference, tree, here)
        for name, suite in zip(rules.suite, chosen, strict=True):
            refuse_absolute(suite, here)
            gone = [c for c in lost(name, suite, tree, here) if select is None or parse(select)(c)]
            changes += [Change(cell=c, quantity="outcome", verdict=Verdict.ONLY_IN_BASE) for c in gone]
            events = ab(
                suite,
                before,
                after,
                pairs_of(suite, before, after, select),
                command=f"dpbench {shlex.join(sys.argv[1:])}",
                directory=results,
                min_effect=rules.min_effect,
                environment=environment(),
            )
            made, own = watched(events, rules.min_effect)
            changes += own
            pairs += made
    title = [f"base: {reference}, run beside this tree"]
    same = sorted({p.new.cell.implementation for p in pairs if p.new.source and p.new.source == p.base.source})
    title += [f"the files of {', '.join(same)} are the same on both sides"] if same else []
    return Found("; ".join(title), changes, [pair.new for pair in pairs], pairs)


def _against_file(suite: Suite, rules: Rules, base: Path, select: str | None, results: Path) -> Found:
    if not base.is_file():
        raise DpbenchError(f"there is no file {base}; measure and write it with: dpbench gate --base {base} --accept")
    before = read(base)
    if before.torn or before.missing:
        lacks = before.torn or f"{base} lacks {len(before.missing)} of {len(before.header.cells)} cells"
        raise DpbenchError(f"{lacks}, so it is no base; write it anew: dpbench gate --base {base} --accept")
    after = read(measured(suite, select, results))
    libraries = library_differences(before.header.environment, after.header.environment)
    changes = seen_once(blamed_on_versions(compare(before, after, rules.min_effect), libraries))
    title = "; ".join([f"base: {base}, {before.header.started}", *differences(before, after)])
    return Found(title, narrowed(changes, select), list(after.records))


def measured(suite: Suite, select: str | None, results: Path) -> Path:
    """The results file of this tree."""
    path = results
    done: list[Record] = []
    events = sweep(suite, cells_of(suite, select), command=f"dpbench {shlex.join(sys.argv[1:])}", directory=results)
    try:
        for event in events:
            if isinstance(event, Started):
                path = event.path
                print(f"{len(event.cells)} cells -> {path}", file=sys.stderr)
            elif isinstance(event, Record):
                done.append(event)
                print(f"  {event.cell.workload.label()}  {line_of(rows(done)[-1])}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        not_interrupted_again()
        events.close()
        print(f"interrupted: {len(done)} cells are in {path}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    return path


def tell(found: Found, ruling: Ruling, min_effect: float, as_json: bool) -> None:
    """What does not pass, and why; to GitHub, too, where this runs there."""
    if as_json:
        parts = {"title": found.title, "exit_code": ruling.exit_code}
        for name in ("tripped", "failed", "unknown", "warned"):
            parts[name] = [{**change.as_json(), "why": why} for change, why in getattr(ruling, name)]
        typer.echo(json.dumps({**parts, "changes": [c.as_json() for c in found.changes]}, indent=1))
    else:
        typer.echo(
            "\n".join(
                [
                    found.title,
                    "",
                    *reporting.lines(found.changes, why=False),
                    *controls(found.pairs, found.changes, min_effect),
                    "",
                ]
            )
        )
        for heading, own in github.sections(ruling):
            typer.echo("\n".join([f"{heading}:", *(f"  {sentence(*one)}" for one in own), ""]))
        cells = "1 cell" if len(found.records) == 1 else f"{len(found.records)} cells"
        counts = f"{len(found.changes)} comparison{'s' * (len(found.changes) != 1)} of {cells}"
        bad = len(ruling.tripped) + len(ruling.failed) + len(ruling.unknown)
        typer.echo(f"gate: {counts}: {'passes' if ruling.exit_code == 0 else f'{bad} do not pass'}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in github.commands(ruling, _files(found.records)):
            typer.echo(line, err=as_json)
        if path := os.environ.get("GITHUB_STEP_SUMMARY"):
            github.append(path, github.summary(ruling, found.changes, found.title))


def sentence(change: Change, why: str) -> str:
    """What, how much, how sure, and why it matters."""
    return f"{reporting.sentence(change)}{': ' + why if why else ''}"


def _files(records: list[Record]) -> dict[str, str]:
    """The source of implementations, where it lies in this tree."""
    from dpbench.registry import source_file

    here = Path.cwd()
    found = {}
    for name in {r.cell.implementation for r in records}:
        with suppress(DpbenchError):
            path = source_file(name)
            if path is not None and path.resolve().is_relative_to(here):
                found[name] = str(path.resolve().relative_to(here))
    return found
