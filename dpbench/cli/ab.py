"""``dpbench ab``: two implementations, or two source trees, timed in turns."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpbench.ab import ROUNDS, pairs_of
from dpbench.ab import ab as both
from dpbench.change import Verdict, verdicts
from dpbench.cli.both import controls, watched
from dpbench.cli.compare import NOT_COMPARABLE, TRIPPED, effect
from dpbench.cli.run import FAILURES, course
from dpbench.cli.signals import ended_as_interrupted
from dpbench.cli.workloads import OPTIONS, Axes, in_lists, takes, timing
from dpbench.errors import DpbenchError
from dpbench.reporting import changes as reporting
from dpbench.sides import sides
from dpbench.slowdown import MIN_EFFECT
from dpbench.sweep import asked


@takes(*OPTIONS)
def ab(
    axes: Axes,
    base: Annotated[str, typer.Option("--base", help="An implementation, or a checkout: the directory of one.")],
    new: Annotated[str, typer.Option("--new", help="The same kind of thing.")],
    suite: Annotated[str | None, typer.Argument(help="A suite's name or file; see: dpbench list suites.")] = None,
    rounds: Annotated[int | None, timing(help=f"Rounds of fresh processes; {ROUNDS} if not given.")] = None,
    budget: Annotated[float | None, timing(help="Seconds of timing per implementation and round.")] = None,
    timeout: Annotated[float | None, timing(help="Seconds after which a cell is given up.")] = None,
    measure: Annotated[str | None, timing(help="What is taken: traced, memory, seconds; all if not given.")] = None,
    select: Annotated[str | None, course("-k", help="Only cells that match: 'bk and not B=8'.")] = None,
    min_effect: Annotated[float, course(help="A difference in time below this share is none.")] = MIN_EFFECT,
    fail_on: Annotated[str | None, course(help="Verdicts that exit 1: slower,more,... or worse.")] = None,
    as_json: Annotated[bool, course("--json", help="A list of changes, and nothing else on stdout.")] = False,
    results: Annotated[Path, course(help="Directory of the results.")] = Path("results"),
) -> None:
    """Is the new one slower? Both sides in turns, in the same rounds, beside the base once more as a control.

    \b
    Exit codes:
      0    compared
      1    a verdict of --fail-on
      2    a mistake in what was asked
      3    a cell failed, was wrong or timed out
      4    nothing could be compared
      5    nothing selected
      130  interrupted
    """
    from dpbench.environment import environment

    effect(min_effect)
    wanted = verdicts((fail_on or "").split(","))
    given = {
        "rounds": ROUNDS if rounds is None else rounds,
        "budget_s": budget,
        "timeout_s": timeout,
        "measure": [name.strip() for name in (measure or "traced,memory,seconds").split(",")],
    }
    lists = in_lists(axes)
    if suite is None and lists.get("model") is None:
        raise DpbenchError("nothing to compare on: give a suite (dpbench ab ... quickstart) or --model and --batch")
    left, right = sides(base, new)
    if right.implementation is not None:
        if lists.get("implementation"):
            raise DpbenchError("--impl means nothing beside --base and --new that are implementations; leave it out")
        lists["implementation"] = [right.implementation]
    what = asked(suite, lists, given)
    cells = pairs_of(what, left, right, select)
    ended_as_interrupted()
    events = both(
        what,
        left,
        right,
        cells,
        command=f"dpbench {shlex.join(sys.argv[1:])}",
        directory=results,
        min_effect=min_effect,
        environment=environment(),
    )
    made, changes = watched(events, min_effect)
    if as_json:
        typer.echo(json.dumps([c.as_json() for c in changes], indent=1))
    else:
        title = f"base {base}, new {new}, {what.rounds} rounds"
        typer.echo("\n".join([title, "", *reporting.lines(changes), *controls(made, changes, min_effect)]))
    if any(c.verdict in wanted for c in changes):
        raise typer.Exit(TRIPPED)
    if any(r.outcome.is_failure for pair in made for r in (pair.base, pair.new)):
        raise typer.Exit(FAILURES)
    if any(c.verdict is Verdict.NOT_COMPARABLE for c in changes):
        raise typer.Exit(NOT_COMPARABLE)
