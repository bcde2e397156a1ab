"""Advice for a model on cards: survey all implementations, confirm the best by one trace more, try what else helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil

from dpbench.cards import Card
from dpbench.complexity.advice import MOST, MOST_ONE_BY_ONE, Offer, Training, at, offer, ranked
from dpbench.complexity.faked import Faked
from dpbench.complexity.line import Line
from dpbench.complexity.modules import sees_weights
from dpbench.complexity.survey import Found, Task, survey
from dpbench.complexity.trace import Trace
from dpbench.complexity.tracing import Tracer, one_by_one
from dpbench.errors import DpbenchError
from dpbench.records import Workload
from dpbench.registry import load

CHUNKS = 8
"""Into how many chunks the loss may be cut."""
TRIES = 4
"""How often a batch is made smaller that does not fit, though by its line it should."""


@dataclass(frozen=True, slots=True)
class Knob:
    """What else could be changed, and what it would bring; ``offer`` is None where it cannot, for ``reason``."""

    label: str
    workload: Workload
    offer: Offer | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """For one card. ``offers`` are ranked; ``best`` is the first of them that clips, its memory traced at its batch."""

    card: Card
    workload: Workload
    offers: tuple[Offer, ...]
    best: Offer | None
    refused: dict[str, str]
    """Why, by implementation: it refuses, or not even one example fits."""
    knobs: tuple[Knob, ...] = ()

    @property
    def baseline(self) -> Offer | None:
        """Who does not clip."""
        return next((o for o in self.offers if not load(o.implementation).PRIVATE), None)

    @property
    def private(self) -> list[Offer]:
        """Who clips."""
        return [o for o in self.offers if load(o.implementation).PRIVATE]


def advise(
    workload: Workload, names: Sequence[str], cards: Sequence[Card], training: Training
) -> Iterator[Found | Advice]:
    """What was looked into, as it comes, and then the advice for each card.

    Raises:
        DpbenchError: an unknown model or option; no card has the precision.
    """
    usable = [card for card in cards if _has(card, workload.precision)]
    if not usable:
        for card in cards:
            card.peak(workload.precision)
    workload = replace(workload, batch=1, logical_batch=None)
    lines: dict[str, Line] = {}
    gradient = 0
    refused: dict[str, str] = {}
    for found in survey([Task(name, workload, (name,)) for name in names]):
        yield found
        if found.line is None:
            refused[found.implementation] = found.reason
        else:
            lines[found.implementation], gradient = found.line, found.gradient
    with Confirming(workload) as confirming:
        first = [_on(card, workload, lines, refused, training, gradient, confirming) for card in usable]
    order = _order(first)
    others = {label: changed for label, changed in changes(workload, usable) if order}
    tried: list[Found] = []
    attached = _attached(first)
    tasks = [Task(k, w, attached if w.checkpointing or w.loss_chunk else order) for k, w in others.items()]
    for found in survey([task for task in tasks if task.implementations]):
        yield found
        tried.append(found)
    tried.sort(key=lambda found: list(others).index(found.task.label))
    for advice in first:
        knobs = tuple(_knob(found, advice.card, training) for found in tried)
        yield replace(advice, knobs=tuple(k for k in knobs if k is not None))


def changes(workload: Workload, cards: Sequence[Card]) -> Iterator[tuple[str, Workload]]:
    """What may be tried beside another implementation."""
    for precision in ("tf32", "amp-bf16"):
        if workload.precision == "fp32" and any(_has(card, precision) for card in cards):
            yield f"precision {precision}", replace(workload, precision=precision)
    text = workload.model.startswith("transformers:")
    if workload.attention == "eager":
        yield "attention sdpa", replace(workload, attention="sdpa")
    if not workload.checkpointing and (text or workload.model.startswith("timm:")):
        yield "checkpointing", replace(workload, checkpointing=True)
    if workload.loss_chunk is None and text:
        chunk = max(1, (workload.seq_len or CHUNKS) // CHUNKS)
        yield f"loss in chunks of {chunk} tokens", replace(workload, loss_chunk=chunk)
    if workload.trainable == "all" and text:
        yield "adapters (lora:r=8)", replace(workload, trainable="lora:r=8")


def _has(card: Card, precision: str) -> bool:
    try:
        card.peak(precision)
    except DpbenchError:
        return False
    return True


def _most(name: str) -> int:
    return MOST_ONE_BY_ONE if one_by_one(name) else MOST


class Confirming:
    """Traces at the batches that are advised: a model is built, and an implementation prepared, once for all cards."""

    def __init__(self, workload: Workload) -> None:
        self._workload, self._stack = workload, ExitStack()
        self._tracers: dict[str, Tracer] = {}
        self._faked: Faked | None = None

    def __enter__(self) -> Confirming:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def trace(self, name: str, batch: int) -> Trace:
        """The trace of one physical batch."""
        self._faked = self._faked or Faked(self._workload)
        if name not in self._tracers:
            self._tracers[name] = self._stack.enter_context(Tracer(name, self._faked))
        return self._tracers[name].at(batch)


def _on(
    card: Card,
    workload: Workload,
    lines: dict[str, Line],
    refused: dict[str, str],
    training: Training,
    gradient: int,
    confirming: Confirming,
) -> Advice:
    """All implementations on one card, the best of them confirmed."""
    offers = []
    reasons = dict(refused)
    for name, line in lines.items():
        found = offer(name, line, card, workload.precision, training, gradient, _most(name))
        if found is None:
            reasons[name] = f"one example needs {line.need(1):,} bytes, the card has {card.capacity:,} for tensors"
        else:
            offers.append(found)
    order = ranked(offers)
    private = [o for o in order if load(o.implementation).PRIVATE]
    precision = workload.precision
    best = (
        _confirmed(private[0], lines[private[0].implementation], card, precision, gradient, confirming)
        if private
        else None
    )
    return Advice(card, workload, tuple(best if best and o is private[0] else o for o in order), best, reasons)


def _confirmed(found: Offer, line: Line, card: Card, precision: str, gradient: int, confirming: Confirming) -> Offer:
    """The offer with its batch traced; a smaller batch where that one does not fit after all."""
    for _ in range(TRIES):
        trace = confirming.trace(found.implementation, found.batch)
        times = ceil(found.examples / found.batch)
        need = trace.resident + trace.peak + (gradient if times > 1 else 0)
        alone = found.times == 1 and found.examples == found.batch
        found = at(found.implementation, trace, found.batch, times, need, card, precision, found.examples)
        if need <= card.capacity or found.batch == 1:
            break
        each = max(1, line.need(found.batch) - line.need(found.batch - 1))
        smaller = max(1, found.batch - ceil((need - card.capacity) / each))
        found = replace(found, batch=smaller, examples=smaller if alone else found.examples)
    return found


def _order(advices: Sequence[Advice]) -> tuple[str, ...]:
    """Implementations that clip, the fastest on most cards first: those that try something else."""
    places: dict[str, int] = {}
    for advice in advices:
        for place, found in enumerate(advice.private):
            places[found.implementation] = places.get(found.implementation, 0) + place
    return tuple(sorted(places, key=lambda name: places[name]))


def _attached(advices: Sequence[Advice]) -> tuple[str, ...]:
    """Likewise those that can recompute activations, as autograd sees their weights; the leanest first."""
    batches: dict[str, int] = {}
    for advice in advices:
        for found in advice.private:
            if sees_weights(load(found.implementation).MODULES) and not one_by_one(found.implementation):
                batches[found.implementation] = batches.get(found.implementation, 0) + found.batch
    return tuple(sorted(batches, key=lambda name: -batches[name]))


def _knob(found: Found, card: Card, training: Training) -> Knob | None:
    """What it brings on a card; None where the card lacks the precision."""
    task = found.task
    if not _has(card, task.workload.precision):
        return None
    if found.line is None:
        return Knob(task.label, task.workload, None, found.reason)
    name, precision = found.implementation, task.workload.precision
    made = offer(name, found.line, card, precision, training, found.gradient, _most(name))
    return Knob(task.label, task.workload, made, "" if made else "not even one example fits")
