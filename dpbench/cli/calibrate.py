"""``dpbench calibrate``: this machine as a card for predictions."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated

import typer

from dpbench.cards import Card, keep
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration, significant


def calibrate(
    device: Annotated[str, typer.Option("--device", "-d", help="torch's name: cpu, cuda.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="CPU threads; as many as torch takes.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The card as an object.")] = False,
) -> None:
    """Measure this machine's matrix products, memory and calls, for: dpbench predict --card here.

    Run it while nothing else runs; it takes a few seconds.
    """
    from dpbench.calibration import calibrate as measure

    for seen in measure(device, threads):
        if isinstance(seen, Card):
            plain = {**asdict(replace(seen, peaks={})), "peaks": dict(seen.peaks)}
            typer.echo(json.dumps(plain) if as_json else text(seen))
            path = keep(seen)
            typer.echo(f"kept in {path}; used by: dpbench predict --card {seen.name}", err=True)
        else:
            typer.echo(f"  {seen}", err=True)


def text(card: Card) -> str:
    """For people."""
    peaks = [[f"products, {name}", f"{significant(peak / 1e9)} GFLOP/s"] for name, peak in card.peaks.items()]
    rows = [
        *peaks,
        ["copy", f"{significant(card.bandwidth / 1e9)} GB/s"],
        ["call of an operator", duration(card.launch)],
    ]
    return "\n".join([card.source, *(f"  {line}" for line in aligned(rows))])
