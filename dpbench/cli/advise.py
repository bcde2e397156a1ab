"""``dpbench advise``: which implementation and batch size to take on which card."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from dpbench.cards import card
from dpbench.cli.workloads import MODEL, STEP, AsJson, Axes, takes, workloads
from dpbench.complexity.advice import Offer, Training, alive, cost, hardly_matters, prices_of
from dpbench.errors import DpbenchError

DEFAULT = ["A100-40GB", "H100-SXM", "L4", "T4"]
"""Cards that are looked at where none is named."""
NO_ADVICE = 3

Cards = Annotated[
    list[str] | None, typer.Option("--card", help="Several times; see: dpbench list cards. here: this machine.")
]
Prices = Annotated[list[str] | None, typer.Option("--price", help="Of a card for an hour: L4=0.8. None are shipped.")]


@takes(*MODEL, *(name for name in STEP if name != "step"))
def advise(
    axes: Axes,
    card_names: Cards = None,
    logical_batch: Annotated[int | None, typer.Option(help="Examples of one step.", min=1, max=2**31)] = None,
    examples: Annotated[int | None, typer.Option(help="Examples of the training set.", min=1, max=2**50)] = None,
    epochs: Annotated[float, typer.Option(help="How often each of them is seen.", min=0.0, max=1e6)] = 1.0,
    price: Prices = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Measure the advice where a card is here.")] = False,
    as_json: AsJson = False,
) -> None:
    """Advise on implementation, batch size and settings of a training step, for cards that need not be here.

    \b
    Exit codes:
      0  advised
      2  a mistake in what was asked
      3  there is none for any of the cards: nothing fits, or all refuse
    """
    from dpbench.cli.advices import lines
    from dpbench.cli.confirm import confirm as confirmed
    from dpbench.complexity.advise import Advice
    from dpbench.complexity.advise import advise as of

    if axes["model"] is None:
        raise DpbenchError("nothing to advise on: give a --model; see: dpbench list models")
    chosen = list(dict.fromkeys(card(name) for name in card_names or DEFAULT))
    prices = prices_of(price or [])
    for name in prices:
        if name not in [c.name for c in chosen]:
            raise DpbenchError(f"a price is given for {name}, which is not asked for; add --card {name}")
    training = Training(examples, epochs, logical_batch)
    whole = {"batch": ["1"], "step": ["train"], "optimizer": axes["optimizer"] or ["adamw"]}
    asked = workloads(None, {**axes, **whole})
    if len(asked) != 1:
        raise DpbenchError(f"advice is for one workload, got {len(asked)}; give one model, T and precision")
    ((workload, names),) = asked.items()
    advices: list[Advice] = []
    for found in of(workload, names, chosen, training):
        if isinstance(found, Advice):
            advices.append(found)
            if not as_json:
                typer.echo("\n".join(lines(found, training, prices.get(found.card.name))) + "\n")
        elif not as_json:
            who = found.implementation if found.task.label == found.implementation else found.task.label
            typer.echo(f"  {who}", err=True)
    if as_json:
        typer.echo(json.dumps([as_object(a, training, prices.get(a.card.name)) for a in advices], indent=1))
    if confirm:
        for advice in advices:
            for line in confirmed(advice):
                typer.echo(line, err=as_json)
    if not any(advice.best for advice in advices):
        raise typer.Exit(NO_ADVICE)


def as_object(advice: Any, training: Training, price: float | None) -> dict[str, Any]:
    """The advice for one card, for machines."""
    spread = hardly_matters(advice.private)
    return {
        "card": advice.card.name,
        "model": advice.workload.model,
        "workload": asdict(replace(advice.workload, batch=1)),
        "capacity": advice.card.capacity,
        "advice": offer_object(advice.best, training, price) if advice.best else None,
        "alive_at_peak": dict(alive(advice.best.trace)) if advice.best else None,
        "hardly_matters": spread is not None,
        "offers": [offer_object(o, training, price) for o in advice.offers],
        "refused": advice.refused,
        "knobs": [
            {
                "change": knob.label,
                "offer": offer_object(knob.offer, training, price) if knob.offer else None,
                "reason": knob.reason or None,
            }
            for knob in advice.knobs
        ],
    }


def offer_object(o: Offer, training: Training, price: float | None) -> dict[str, Any]:
    """One offer."""
    hours = o.hours(training)
    spent = cost(hours, price)
    return {
        "implementation": o.implementation,
        "batch": o.batch,
        "physical_batches": o.times,
        "examples_per_s": o.rate,
        "step_seconds": asdict(o.step),
        "hours": asdict(hours) if hours else None,
        "cost": asdict(spent) if spent else None,
        "need_bytes": o.need,
    }
