"""``dpbench predict``: what each implementation costs, without running it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dpbench.cards import Card, card
from dpbench.cli.predictions import lines
from dpbench.cli.workloads import MODEL, STEP, AsJson, Axes, CardName, SuiteName, takes, workloads
from dpbench.complexity.prediction import Prediction


@takes(*MODEL, *STEP, "batch")
def predict(
    axes: Axes,
    suite: SuiteName = None,
    card_name: CardName = None,
    on: Annotated[str, typer.Option(help="trace: no memory, any size; real: small batches of real tensors.")] = "trace",
    as_json: AsJson = False,
) -> None:
    """Predict FLOPs, peak memory and, for a card, time: the real code is traced on shapes without memory.

    \b
    Exit codes:
      0  predicted; refusals are results
      2  a mistake in what was asked
      5  nothing selected
    """
    from dpbench.complexity import predict as of

    found_card = None if card_name is None else card(card_name)
    asked = workloads(suite, axes)
    everything: list[dict[str, Any]] = []
    for workload, names in asked.items():
        made = []
        for prediction in of.predict(workload, names, found_card, on):
            made.append(prediction)
            if not as_json:
                typer.echo(f"  {prediction.implementation}", err=True)
        everything += [as_object(p, found_card) for p in made]
        if not as_json:
            typer.echo("\n".join(lines(made, found_card)) + "\n")
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


def as_object(p: Prediction, card: Card | None) -> dict[str, Any]:
    """One prediction for machines."""
    found: dict[str, Any] = {
        "implementation": p.implementation,
        "model": p.workload.model,
        "batch": p.workload.batch,
        "T": p.workload.seq_len,
        "card": card.name if card else None,
        "workload": asdict(p.workload),
        "coverage": {"trained": p.trainable, "frozen": p.parameters - p.trainable, "refused": p.reason or None},
        "flops": None,
        "peak_bytes": None,
        "seconds": asdict(p.seconds) if p.seconds else None,
    }
    if p.trace is None:
        return found
    analytic = None if p.analytic is None else p.analytic.total()
    found["on"] = p.on
    found["flops"] = {
        "analytic": analytic,
        "kernels": None if p.analytic is None else p.kernels.total(),
        "traced": p.trace.total,
        "by_module": {"analytic": dict(p.analytic or {}), "traced": dict(p.trace.flops)},
        "between_activations": dict(p.trace.others),
        "unexplained": {f"{module} {name}": flops for (module, name), flops in p.unexplained.items()},
    }
    found["peak_bytes"] = {
        "analytic": p.space.peak if p.space else None,
        "traced": p.trace.peak,
        "activations": p.space.activations if p.space else None,
        "kept": p.space.kept if p.space else None,
        "transient": p.space.transient if p.space else None,
        "gradients": p.space.gradients if p.space else None,
        "resident": p.trace.resident,
        "in": p.trace.peak_in,
        "alive": p.trace.alive,
    }
    found["traffic_bytes"] = p.trace.traffic
    return found
