"""``dpbench compare``: what changed from one run to another."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

from dpbench.change import Change, Verdict, verdicts
from dpbench.cli.files import narrowed, opened_one
from dpbench.comparison import compare as compared
from dpbench.comparison import differences, is_one_run
from dpbench.errors import DpbenchError
from dpbench.reporting import changes as reporting
from dpbench.reporting import visible as precision
from dpbench.results import Results
from dpbench.slowdown import MIN_EFFECT
from dpbench.store import accept as accepted
from dpbench.visible import visible

TRIPPED, NOT_COMPARABLE = 1, 4


def compare(
    files: Annotated[list[str], typer.Argument(metavar="BASE [NEW]...", help="Results files; - reads records.")],
    select: Annotated[str | None, typer.Option("-k", help="Only cells that match: 'bk and not B=8'.")] = None,
    min_effect: Annotated[float, typer.Option(help="A difference in time below this share is none.")] = MIN_EFFECT,
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Times of two runs as they are, not relative to nonprivate in each.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="What is the same, too.")] = False,
    fail_on: Annotated[
        str | None, typer.Option(help="Verdicts that exit 1: slower,more,... ; worse stands for all that are.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Write NEW over BASE, small enough for git.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A list of changes, and nothing else on stdout.")] = False,
) -> None:
    """What got slower, larger or wrong from BASE to each NEW, by how much, and how sure that is.

    A single file: which differences its figures could show.

    \b
    Exit codes:
      0    compared
      1    a verdict of --fail-on
      2    a mistake in what was asked
      4    something may not be compared: other hardware, no cell in common
      5    nothing selected
      130  interrupted
    """
    effect(min_effect)
    wanted = verdicts((fail_on or "").split(","))
    if accept and (len(files) != 2 or "-" in files or select):
        raise DpbenchError(
            "--accept writes all of a file over a base; give two files, no -k: dpbench compare BASE NEW --accept"
        )
    base, *others = [opened_one(name) for name in files]
    if not others:
        seen = narrowed(visible(base), select)
        typer.echo(json.dumps([s.as_json() for s in seen], indent=1) if as_json else "\n".join(precision.lines(seen)))
        return
    reference = None if absolute else "nonprivate"
    found = [narrowed(compared(base, new, min_effect, reference), select) for new in others]
    if as_json:
        typer.echo(json.dumps([_as_json(base, n, c) for n, c in zip(others, found, strict=True)], indent=1))
    else:
        for new, changes in zip(others, found, strict=True):
            typer.echo("\n".join([*heading(base, new, absolute), "", *reporting.lines(changes, everything), ""]))
    every = [c for changes in found for c in changes]
    if any(c.verdict in wanted for c in every):
        raise typer.Exit(TRIPPED)
    if accept:
        typer.echo(f"accepted: {accepted(others[0], base.path)}", err=True)
    apart = (Verdict.ONLY_IN_BASE, Verdict.ONLY_IN_NEW)
    nothing = any(all(c.verdict in apart for c in changes) for changes in found)
    if nothing or any(c.verdict is Verdict.NOT_COMPARABLE for c in every):
        raise typer.Exit(NOT_COMPARABLE)


def heading(base: Results, new: Results, absolute: bool) -> list[str]:
    """Which files these are, what differs between where they were taken, and how times are compared."""
    text = [f"{name}  {side.path}, {side.header.started}" for name, side in (("base", base), ("new ", new))]
    if is_one_run(base, new):
        text.append("times: both sides of one run, timed in turns")
    else:
        how = "as they are" if absolute else "relative to nonprivate in its own run, where that was measured"
        text.append(f"times: two runs share no clock; each {how}. dpbench ab times two sides in turns")
    return [*text, *differences(base, new)]


def _as_json(base: Results, new: Results, changes: list[Change]) -> dict[str, Any]:
    return {
        "base": str(base.path),
        "new": str(new.path),
        "one_run": is_one_run(base, new),
        "differences": differences(base, new),
        "changes": [c.as_json() for c in changes],
    }


def effect(share: float) -> None:
    """Raise unless it is a share that there can be."""
    if not 0 <= share < math.inf:
        raise DpbenchError(f"--min-effect is {share:g}, expected a share such as 0.03")
