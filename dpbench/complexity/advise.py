"""Advice for a model on cards: survey all implementations, confirm the best by one trace more, try what else helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from dpbench.cards import Card
from dpbench.complexity.advice import Offer, Setting, Training, ranked
from dpbench.complexity.faked import Faked
from dpbench.complexity.line import Line
from dpbench.complexity.maxbatch import search, worth_running
from dpbench.complexity.modules import sees_weights
from dpbench.complexity.survey import MOST, Found, Task, survey, workers
from dpbench.complexity.trace import Trace
from dpbench.complexity.tracing import Tracer, one_by_one
from dpbench.errors import DpbenchError
from dpbench.records import Workload
from dpbench.registry import load

CHUNKS = 8
"""Into how many chunks the loss may be cut."""


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
    usable = [card for card in cards if card.has(workload.precision)]
    if not usable:
        cards[0].peak(workload.precision)
    workload = replace(workload, batch=1, logical_batch=None)
    for card in cards:
        if card not in usable:
            lacking = dict.fromkeys(names, f"{card.name} has no {workload.precision}")
            yield Advice(card, workload, (), None, lacking)
    lines: dict[str, Line] = {}
    gradient = 0
    refused: dict[str, str] = {}
    capacity = max(card.capacity for card in usable)
    most = min(limit for limit in (training.logical, training.examples, MOST) if limit is not None)
    asked = [Task(name, workload, (name,), capacity, worth_running(name, most)) for name in names]
    with workers() as pool, Confirming(workload) as confirming:
        for found in survey(asked, pool):
            yield found
            if found.line is None:
                refused[found.implementation] = found.reason
            else:
                lines[found.implementation], gradient = found.line, found.gradient
        setting = Setting(workload.precision, training, gradient, most)
        first = [_on(card, lines, refused, setting, confirming) for card in usable]
        order, attached = _order(first), _attached(first)
        others = dict(changes(workload, usable))
        tasks = [
            Task(label, changed, attached if changed.checkpointing or changed.loss_chunk else order, capacity, most)
            for label, changed in others.items()
        ]
        tried: list[Found] = []
        for found in survey([task for task in tasks if task.implementations], pool):
            yield found
            tried.append(found)
    tried.sort(key=lambda found: list(others).index(found.task.label))
    for advice in first:
        knobs = tuple(_knob(found, advice.card, setting) for found in tried)
        yield replace(advice, knobs=tuple(k for k in knobs if k is not None))


def changes(workload: Workload, cards: Sequence[Card]) -> Iterator[tuple[str, Workload]]:
    """What may be tried beside another implementation."""
    for precision in ("tf32", "amp-bf16"):
        if workload.precision == "fp32" and any(card.has(precision) for card in cards):
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


class Confirming:
    """Traces at the batches that are advised: a model is built, and an implementation prepared, once for all cards."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self._stack = workload, ExitStack()
        self._tracers: dict[str, Tracer] = {}
        self._faked: Faked | None = None

    def __enter__(self) -> Confirming:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def trace(self, name: str, batch: int) -> Trace:
        """The trace of one physical batch."""
        self._faked = self._faked or Faked(self.workload)
        if name not in self._tracers:
            self._tracers[name] = self._stack.enter_context(Tracer(name, self._faked))
        return self._tracers[name].at(batch)


def _on(
    card: Card, lines: dict[str, Line], refused: dict[str, str], setting: Setting, confirming: Confirming
) -> Advice:
    """All implementations on one card; the baseline, and the best of the others, by traces at their batches."""
    offers: dict[str, Offer] = {}
    reasons = dict(refused)
    for name, line in lines.items():
        found = setting.offer(name, line, card, worth_running(name, setting.most))
        if found is None:
            need = line.need(1)
            reasons[name] = f"one example needs {need:,} bytes, {card.name} has {card.capacity:,} for tensors"
        else:
            offers[name] = found
    for private in (False, True):
        confirmed: set[str] = set()
        # Who is confirmed may turn out to be slower than who was second.
        while first := next(
            (o for o in ranked(list(offers.values())) if load(o.implementation).PRIVATE is private), None
        ):
            name = first.implementation
            if name in confirmed:
                break
            confirmed.add(name)
            try:
                offers[name] = _confirmed(first, card, setting, confirming)
            except DpbenchError as error:
                reasons[name] = str(error)
                del offers[name]
    order = ranked(list(offers.values()))
    best = next((o for o in order if load(o.implementation).PRIVATE), None)
    return Advice(card, confirming.workload, tuple(order), best, reasons)


def _confirmed(found: Offer, card: Card, setting: Setting, confirming: Confirming) -> Offer:
    """The offer with its batch traced, or a smaller one where that does not fit after all.

    Raises:
        DpbenchError: where none does, or the implementation cannot be traced there.
    """
    kept = setting.gradient if found.times > 1 else 0

    def need(batch: int) -> int:
        trace = confirming.trace(found.implementation, batch)
        return trace.resident + trace.peak + kept

    batch = found.batch
    if need(batch) > card.capacity:
        batch = search(need, card.capacity, found.batch, [found.batch - 1])
    if not batch:
        raise DpbenchError(f"not even one example fits into {card.name}")
    line = Line(trace := confirming.trace(found.implementation, batch), trace, batch, batch + 1)
    return setting.at(found.implementation, line, card, batch)


def _order(advices: Sequence[Advice]) -> tuple[str, ...]:
    """Implementations that clip, the fastest on most cards first: those that try something else."""
    places: Counter[str] = Counter()
    for advice in advices:
        for place, found in enumerate(advice.private):
            places[found.implementation] += place - len(advice.private)
    return tuple(sorted(places, key=lambda name: places[name]))


def _attached(advices: Sequence[Advice]) -> tuple[str, ...]:
    """Likewise those that can recompute activations, as autograd sees their weights; the leanest first."""
    batches: Counter[str] = Counter()
    for advice in advices:
        for found in advice.private:
            if sees_weights(load(found.implementation).MODULES) and not one_by_one(found.implementation):
                batches[found.implementation] += found.batch
    return tuple(sorted(batches, key=lambda name: -batches[name]))


def _knob(found: Found, card: Card, setting: Setting) -> Knob | None:
    """What it brings on a card; None where the card lacks the precision."""
    task = found.task
    if not card.has(task.workload.precision):
        return None
    if found.line is None:
        return Knob(task.label, task.workload, None, found.reason)
    name = found.implementation
    changed = replace(setting, precision=task.workload.precision, gradient=found.gradient)
    made = changed.offer(name, found.line, card, worth_running(name, setting.most))
    return Knob(task.label, task.workload, made, "" if made else "not even one example fits")
