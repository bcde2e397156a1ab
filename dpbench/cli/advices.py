"""Advice for one card as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbench.cards import HERE
from dpbench.complexity.advice import Offer, Training, alive, cost, hardly_matters
from dpbench.complexity.roofline import Seconds
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration, ratio, significant, size

if TYPE_CHECKING:
    from dpbench.complexity.advise import Advice, Knob


def lines(advice: Advice, training: Training, price: float | None) -> list[str]:
    """The table of implementations, the advice in a sentence, and what else could be turned."""
    card, workload = advice.card, advice.workload
    label = workload.label().replace(f" B={workload.batch}", "")
    head = f"{card.name}: {label}, {size(card.capacity)} for tensors"
    if advice.best is None:
        return [head, *(f"  {name}: {reason}" for name, reason in advice.refused.items())]
    table = [columns(training, price)]
    table += [row(o, advice.baseline, training, price) for o in advice.offers]
    knobs = [knob_row(k, advice.best) for k in advice.knobs]
    return [
        head,
        *(f"  {line}" for line in aligned(table)),
        "",
        *sentences(advice, training, price),
        *([""] if knobs else []),
        *(
            f"  {line}"
            for line in aligned([["instead", "by", "B", "examples/s", "times", "need"], *knobs], left=2)
            if knobs
        ),
        *(f"{name}: {reason}" for name, reason in advice.refused.items()),
        *(
            [
                "Times are a roofline of published peaks, which no kernel reaches: they rank, a step will take longer.",
                "Memory is that of tensors: kernels and the allocator take some, too (see: maxbatch --on real).",
            ]
            if not card.name.startswith(HERE)
            else []
        ),
    ]


def columns(training: Training, price: float | None) -> list[str]:
    """The head of the table."""
    head = ["implementation", "B", "per step", "examples/s", "ratio", "need"]
    if training.examples is not None:
        head += ["hours", "range"]
    return [*head, *(["cost"] if training.examples is not None and price is not None else [])]


def row(o: Offer, base: Offer | None, training: Training, price: float | None) -> list[str]:
    """One implementation."""
    relative = ratio(o.rate / base.rate) if base else "-"
    found = [o.implementation, str(o.batch), f"x {o.times}", significant(o.rate), relative, size(o.need)]
    hours = o.hours(training)
    if hours is not None:
        found += [significant(hours.expected), f"{significant(hours.low)} - {significant(hours.high)}"]
        spent = cost(hours, price)
        found += [significant(spent.expected)] if spent else []
    return found


def sentences(advice: Advice, training: Training, price: float | None) -> list[str]:
    """What to take, and what it is good for."""
    best, card = advice.best, advice.card
    assert best is not None
    take = f"Take {best.implementation} with {best.batch} examples at a time"
    if training.logical:
        take += f", {best.times} times for a step of {training.logical}" if best.times > 1 else ", a whole step at once"
    take += f": {size(best.need)} of {size(card.capacity)}, a step of {span(best.step)}"
    hours = best.hours(training)
    if hours:
        take += f", {significant(hours.expected)} hours ({significant(hours.low)} to {significant(hours.high)})"
    spent = cost(hours, price)
    if spent:
        take += f" at a cost of {significant(spent.expected)} ({significant(spent.low)} to {significant(spent.high)})"
    parts = ", ".join(f"{share:.0%} {name}" for name, share in alive(best.trace))
    if training.examples is None:
        said_of_hours = ["Hours and cost: give --examples (and --epochs, --logical-batch, --price)."]
    else:
        said_of_hours = []
    said = [f"{take}.", *said_of_hours, f"Alive at its peak, beside {size(best.trace.resident)} that stay: {parts}."]
    spread = hardly_matters(advice.private)
    if spread is not None:
        said.append(
            f"The implementation hardly matters here: the fastest is {spread:.2f} times as fast as the slowest."
        )
    return said


def span(s: Seconds) -> str:
    """A time with its range."""
    return f"{duration(s.expected)} ({duration(s.low)} to {duration(s.high)})"


def knob_row(knob: Knob, best: Offer) -> list[str]:
    """What one change would bring beside the advice."""
    o = knob.offer
    if o is None:
        return [knob.label, knob.reason.splitlines()[0][:70], "", "", "", ""]
    return [knob.label, o.implementation, str(o.batch), significant(o.rate), ratio(o.rate / best.rate), size(o.need)]
