"""Two results files side by side, cell by cell: what became of it first, then its figures. No torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dpbench import comparability
from dpbench.change import EXACT, Change, Verdict, turn
from dpbench.records import Cell, Outcome, Record, Traced
from dpbench.results import Results
from dpbench.rows import memory_of
from dpbench.slowdown import MIN_EFFECT, References, as_they_are, of_one_run, of_two_runs, per_example

NEAR = 0.01
"""Measured peaks that differ by less are the same: allocators round, and threads come and go."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell in both; None where one has no record of it."""

    cell: Cell
    base: Record | None
    new: Record | None


def compare(
    base: Results, new: Results, min_effect: float = MIN_EFFECT, reference: str | None = "nonprivate"
) -> list[Change]:
    """Every quantity that both measured, in the order of the cells.

    Timings of one run (``dpbench ab``) are compared round by round; those of two, which share no clock, relative to
    ``reference`` in each; None: as they are.
    """
    one_run, other = is_one_run(base, new), _hardware(base, new)
    held = [_references(side, reference) for side in (base, new)]

    def times(cell: Cell, before: Record, after: Record) -> Change:
        if other:
            return _elsewhere(cell, "seconds", other[0])
        if one_run:
            return of_one_run(cell, before, after, min_effect)
        if reference is None:
            return as_they_are(cell, before, after, min_effect)
        return of_two_runs(cell, before, after, held[0], held[1], min_effect)

    return [change for pair in pairs(base, new) for change in of_pair(pair, times, other)]


def of_pair(
    pair: Pair, times: Callable[[Cell, Record, Record], Change] = of_one_run, other: Sequence[str] = ()
) -> list[Change]:
    """Every quantity of one cell; ``times`` compares seconds, ``other`` says what hardware differs."""
    changes = [_outcome(pair)]
    if pair.base is None or pair.new is None or not pair.base.outcome is pair.new.outcome is Outcome.OK:
        return changes
    changes += _coverage(pair.cell, pair.base, pair.new)
    changes += _seconds(pair.cell, pair.base, pair.new, times)
    return [*changes, *_memory(pair.cell, pair.base, pair.new, other), *_counted(pair.cell, pair.base, pair.new)]


def differences(base: Results, new: Results) -> list[str]:
    """What differs between where both were taken; hardware first."""
    software = comparability.differences(base.header.environment, new.header.environment)
    return [*_hardware(base, new), *([f"differs: {', '.join(software)}"] if software else [])]


def _hardware(base: Results, new: Results) -> list[str]:
    environments = base.header.environment, new.header.environment
    if comparability.same_hardware(*environments):
        return []
    apart = comparability.hardware_differences(*environments)
    return [f"other hardware: {', '.join(apart) or 'one of both does not say which'}"]


def is_one_run(base: Results, new: Results) -> bool:
    """Whether they are the two sides of one run, which were timed in turns."""
    return bool(base.header.run) and base.header.run == new.header.run


def pairs(base: Results, new: Results) -> list[Pair]:
    """The cells of both; two sides of one run list theirs in the same order, and may call them differently."""
    before, after = ({r.cell: r for r in side.records} for side in (base, new))
    if is_one_run(base, new):
        cells = zip(base.header.cells, new.header.cells, strict=True)
        return [Pair(a, before.get(b), after.get(a)) for b, a in cells]
    cells_of = [[*side.header.cells, *(r.cell for r in side.records)] for side in (new, base)]
    return [Pair(cell, before.get(cell), after.get(cell)) for cell in dict.fromkeys([*cells_of[0], *cells_of[1]])]


def _references(side: Results, name: str | None) -> References:
    return {r.cell.workload: r for r in side.records if r.cell.implementation == name and r.outcome is Outcome.OK}


def _outcome(pair: Pair) -> Change:
    if pair.base is None or pair.new is None:
        lacking = {(True, False): Verdict.ONLY_IN_NEW, (False, True): Verdict.ONLY_IN_BASE}
        verdict = lacking.get((pair.base is None, pair.new is None), Verdict.NOT_COMPARABLE)
        reason = "not finished in either" if verdict is Verdict.NOT_COMPARABLE else ""
        return Change(cell=pair.cell, quantity="outcome", verdict=verdict, reason=reason)
    verdict = turn(pair.base.outcome, pair.new.outcome)
    return Change(cell=pair.cell, quantity="outcome", verdict=verdict, reason=pair.new.reason or pair.base.reason)


def _coverage(cell: Cell, base: Record, new: Record) -> Iterator[Change]:
    if base.coverage is None or new.coverage is None:
        yield from _lacking(cell, "coverage", base.coverage, new.coverage)
        return
    before, after = base.coverage.share, new.coverage.share
    verdict, reason = Verdict.SAME, ""
    if after < before:
        verdict, reason = Verdict.LESS_COVERAGE, f"no gradient any more: {', '.join(new.coverage.frozen)}"
    elif after > before:
        verdict = Verdict.MORE_COVERAGE
    yield Change(cell=cell, quantity="coverage", verdict=verdict, base=before, new=after, reason=reason)


def _seconds(
    cell: Cell, base: Record, new: Record, times: Callable[[Cell, Record, Record], Change]
) -> Iterator[Change]:
    before, after = (r if any(per_example(r)) else None for r in (base, new))
    yield from [times(cell, before, after)] if before and after else _lacking(cell, "seconds", before, after)


def _memory(cell: Cell, base: Record, new: Record, other: Sequence[str]) -> Iterator[Change]:
    before, after = memory_of(base), memory_of(new)
    if before is None or after is None:
        yield from _lacking(cell, "memory", before, after)
    else:
        yield _elsewhere(cell, "memory", other[0]) if other else _size(cell, "memory", before, after, NEAR)


def _lacking(cell: Cell, quantity: str, base: object, new: object) -> Iterator[Change]:
    """What only one of both measured: what is not known any more is not the same."""
    if base is not None:
        yield Change(cell=cell, quantity=quantity, verdict=Verdict.ONLY_IN_BASE, reason="not measured any more")
    elif new is not None:
        yield Change(cell=cell, quantity=quantity, verdict=Verdict.ONLY_IN_NEW)


def _elsewhere(cell: Cell, quantity: str, reason: str) -> Change:
    return Change(cell=cell, quantity=quantity, verdict=Verdict.NOT_COMPARABLE, reason=reason)


def _counted(cell: Cell, base: Record, new: Record) -> Iterator[Change]:
    if base.traced is None or new.traced is None:
        for quantity in EXACT:
            yield from _lacking(cell, quantity, base.traced, new.traced)
        return
    for quantity in EXACT:
        change = _size(cell, quantity, getattr(base.traced, quantity), getattr(new.traced, quantity), 0.0)
        yield replace(change, reason=_modules(base.traced, new.traced)) if quantity == "flops" else change


def _size(cell: Cell, quantity: str, base: float, new: float, near: float) -> Change:
    change = Change(cell=cell, quantity=quantity, verdict=Verdict.SAME, base=base, new=new)
    if not (math.isfinite(base) and math.isfinite(new)):
        return replace(change, verdict=Verdict.NOT_COMPARABLE, reason="a figure that is no number")
    if abs(new - base) <= near * base:
        return change
    return replace(change, verdict=Verdict.MORE if new > base else Verdict.LESS)


def _modules(base: Traced, new: Traced) -> str:
    """Where FLOPs changed, by the paper's modules."""
    names = [m for m in sorted({*base.modules, *new.modules}) if base.modules.get(m) != new.modules.get(m)]
    return ", ".join(f"module {m}: {base.modules.get(m, 0):,} -> {new.modules.get(m, 0):,}" for m in names)
