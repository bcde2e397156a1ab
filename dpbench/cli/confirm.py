"""Advice held against a measurement, where its card is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dpbench.cards import HERE, of_device
from dpbench.records import Cell, Record
from dpbench.reporting.numbers import duration, size
from dpbench.rows import rows
from dpbench.suite import BASELINE, Suite
from dpbench.sweep import sweep

if TYPE_CHECKING:
    from dpbench.complexity.advise import Advice

ROUNDS, SECONDS, LIMIT = 2, 10.0, 120.0
"""Fresh processes, seconds of timing in each, and seconds after which a cell is given up: five minutes in all."""


def confirm(advice: Advice) -> Iterator[str]:
    """Measure the advised implementation at its batch, where the card is here, and say where the advice was wrong."""
    best, device = advice.best, device_of(advice)
    if best is None:
        return
    if device is None:
        yield f"{advice.card.name}: not confirmed, as it is not here; run it there, or calibrate and give --card here"
        return
    workload = replace(
        advice.workload, batch=best.batch, device=device, logical_batch=best.examples if best.times > 1 else None
    )
    cells = [Cell(name, workload) for name in (BASELINE, best.implementation)]
    suite = Suite(name="confirm", title="confirm", rounds=ROUNDS, budget_s=SECONDS, timeout_s=LIMIT)
    records = [event for event in sweep(suite, cells, command="dpbench advise --confirm") if isinstance(event, Record)]
    for found in rows(records):
        if found.implementation != best.implementation:
            continue
        if found.seconds is None:
            yield f"{advice.card.name}: not confirmed, {found.outcome}: {found.reason}"
            continue
        apart = found.seconds / best.step.expected - 1
        inside = best.step.low <= found.seconds <= best.step.high
        yield (
            f"{advice.card.name}: {best.implementation} at B={best.batch} measured {duration(found.seconds)} a "
            f"step, predicted {duration(best.step.expected)}: {apart:+.0%}, {'in' if inside else 'out of'} its range"
        )
        if found.memory is not None:
            peak = best.need - best.trace.resident
            yield f"  peak {size(found.memory)}, predicted {size(peak)}: {found.memory / peak - 1:+.1%}"


def device_of(advice: Advice) -> str | None:
    """torch's name of the device that the card is; None if it is not here."""
    import torch

    if advice.card.name.startswith(HERE):
        return advice.card.name.partition(":")[2] or "cpu"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    for i, name in enumerate(names):
        found = of_device(name)
        if found and found.name == advice.card.name:
            return f"cuda:{i}"
    return None
