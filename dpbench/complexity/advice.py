"""Which implementation and batch size to take on a card, from lines of traces. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from dpbench.cards import Card, card
from dpbench.complexity.line import Line
from dpbench.complexity.roofline import Seconds, seconds
from dpbench.complexity.trace import Operation, Trace
from dpbench.errors import DpbenchError

HARDLY = 1.1
"""How many times faster the fastest implementation is than the slowest, below which the choice hardly matters."""


@dataclass(frozen=True, slots=True)
class Training:
    """What is to be trained: ``examples`` for ``epochs``, ``logical`` of them for a step; a physical batch, if None."""

    examples: int | None = None
    epochs: float = 1.0
    logical: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What one implementation does on one card."""

    implementation: str
    batch: int
    """Examples at a time."""
    times: int
    """Physical batches of one step."""
    step: Seconds
    """Of one step, which is a logical batch."""
    examples: int
    """Of one step."""
    need: int
    """Bytes, what is resident included."""
    trace: Trace
    """Of one physical batch."""

    @property
    def rate(self) -> float:
        """Examples per second."""
        return self.examples / self.step.expected

    def hours(self, training: Training) -> Seconds | None:
        """Of the whole training, in hours; None where it is not known how long that is."""
        if training.examples is None:
            return None
        # Of batches that are drawn by chance as many are expected as examples fill.
        steps = training.examples * training.epochs / self.examples
        return Seconds(*(steps * s / 3600 for s in (self.step.low, self.step.expected, self.step.high)))


@dataclass(frozen=True, slots=True)
class Setting:
    """What all offers are made for. ``gradient``: bytes of the sum that is kept between physical batches."""

    precision: str
    training: Training
    gradient: int
    most: int
    """The largest physical batch that is of interest: no larger than a step, or than there are examples."""

    def offer(self, implementation: str, line: Line, card: Card, most: int) -> Offer | None:
        """At the largest physical batch that fits, or a smaller one that divides the logical batch more evenly.

        None where not even one example fits.
        """
        logical = self.training.logical
        batch = line.largest(card.capacity, most)
        if logical and batch < logical:
            batch = line.largest(card.capacity - self.gradient, most)
        if not batch:
            return None
        return self.at(implementation, line, card, ceil(logical / ceil(logical / batch)) if logical else batch)

    def at(self, implementation: str, line: Line, card: Card, batch: int) -> Offer:
        """At a physical batch; the last one of a logical batch counts as a whole one."""
        examples = self.training.logical or batch
        times = ceil(examples / batch)
        trace = line.at(batch)
        step = seconds(accumulated(trace, times, self.gradient), card, self.precision)
        need = trace.resident + trace.peak + (self.gradient if times > 1 else 0)
        return Offer(implementation, batch, times, step, examples, need, trace)


def accumulated(trace: Trace, times: int, gradient: int) -> Trace:
    """The operations of a step of so many physical batches, which are added up: noise and optimizer come once."""
    operations = [
        o if o.module == "update" else replace(o, count=o.count * times, flops=o.flops * times, bytes=o.bytes * times)
        for o in trace.operations
    ]
    if times > 1:
        # Two sums are read and one is written.
        operations.append(Operation("aten.add", "update", "", "", "float32", times - 1, 0, 3 * gradient * (times - 1)))
    return replace(trace, operations=tuple(operations))


def ranked(offers: Sequence[Offer]) -> list[Offer]:
    """The fastest first; of two that are as fast to a thousandth, the one that needs less memory."""
    fastest = max((o.rate for o in offers), default=1.0)
    return sorted(offers, key=lambda o: (-round(o.rate / fastest, 3), o.need))


def hardly_matters(offers: Sequence[Offer]) -> float | None:
    """How many times faster the fastest is than the slowest, where that is hardly anything."""
    rates = [o.rate for o in offers]
    if len(rates) < 2:
        return None
    spread = max(rates) / min(rates)
    return spread if spread < HARDLY else None


def alive(trace: Trace, shown: int = 3) -> list[tuple[str, float]]:
    """What is alive at the peak: the largest parts of it, the resident bytes apart."""
    named: dict[str, int] = {}
    for label, size in trace.alive.items():
        part = label.partition(": ")[2]
        name = LOGITS if part.split(".")[-1] in HEADS else part
        named[name] = named.get(name, 0) + size
    largest = sorted(named.items(), key=lambda item: -item[1])[:shown]
    return [(name, size / max(trace.peak, 1)) for name, size in largest]


LOGITS = "logits and loss"
HEADS = ("losses", "lm_head", "head", "score", "classifier", "fc")
"""Parts of models that make logits, by the end of their names."""


def cost(hours: Seconds | None, price: float | None) -> Seconds | None:
    """In the currency of ``price``, per hour."""
    if hours is None or price is None:
        return None
    return Seconds(hours.low * price, hours.expected * price, hours.high * price)


def prices_of(given: Sequence[str]) -> Mapping[str, float]:
    """``L4=0.8`` as a price per hour by card.

    Raises:
        DpbenchError: not of that form, or no such card.
    """
    prices = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            prices[card(name).name] = float(number)
        except ValueError:
            raise DpbenchError(f"price is {text!r}, expected CARD=PRICE for an hour, such as L4=0.8") from None
        if not 0 < prices[card(name).name] < float("inf"):
            raise DpbenchError(f"price is {text!r}, expected a positive price for an hour, such as L4=0.8")
    return prices
