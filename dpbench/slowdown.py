"""Whether one side is slower than the other, and how sure that is. No torch.

A difference counts if its interval leaves out none at all and it is no smaller than a minimum effect; there is none if
the interval lies within that effect; else nothing can be concluded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from dpbench import stats
from dpbench.change import Change, Verdict
from dpbench.ratios import Ratio, independent, paired, pooled, relative
from dpbench.records import Cell, Record, Workload
from dpbench.stats import MIN_ROUNDS
from dpbench.timed import AGAIN, CONTROL, SECONDS

MIN_EFFECT = 0.03
"""A difference in time that is smaller is none, however sure it is."""

_DIFFERS = (Verdict.SLOWER, Verdict.FASTER)

References = Mapping[Workload, Record]
"""What timings of one run are held against, so that two runs can be compared."""


def judged(ratio: Ratio | None, min_effect: float = MIN_EFFECT) -> Verdict:
    """The verdict that one ratio gives."""
    if ratio is None or not math.isfinite(ratio.value):
        return Verdict.NOT_COMPARABLE
    if ratio.low is None or ratio.high is None:
        return Verdict.INCONCLUSIVE
    most = 1 + min_effect
    if ratio.low > 1 and ratio.value > most:
        return Verdict.SLOWER
    if ratio.high < 1 and ratio.value < 1 / most:
        return Verdict.FASTER
    return Verdict.SAME if ratio.low >= 1 / most and ratio.high <= most else Verdict.INCONCLUSIVE


def of_one_run(cell: Cell, base: Record, new: Record, min_effect: float = MIN_EFFECT) -> Change:
    """Two sides that were timed in turns.

    Where it was repeated, both have to say the same. Where the base was timed beside itself, too, and differs from
    itself, nothing can be concluded.
    """
    first = paired(per_example(new), per_example(base))
    again = paired(per_example(new, AGAIN), per_example(base, AGAIN), seed=1)
    timed_twice = new if CONTROL in new.metrics else base
    control = paired(per_example(timed_twice, CONTROL), per_example(timed_twice), seed=2)
    verdict, reason = judged(first, min_effect), new.reason or _too_few(first)
    if again is not None and (second := judged(again, min_effect)) is not verdict:
        verdict, reason = Verdict.INCONCLUSIVE, f"{verdict} at first, {second} when it was repeated"
    if verdict in _DIFFERS and judged(control, min_effect) in _DIFFERS:
        verdict, reason = Verdict.INCONCLUSIVE, "the base differs from itself: other work on this machine?"
    ratio = pooled([first, again]) if first is not None and again is not None else first
    return replace(_change(cell, base, new, verdict, ratio), control=control, reason=reason)


def of_two_runs(
    cell: Cell, base: Record, new: Record, before: References, after: References, min_effect: float = MIN_EFFECT
) -> Change:
    """Sides of two runs, relative to the reference of each.

    What has none, the reference itself among it, may differ because the machine did: of that nothing is concluded.
    """
    held = before.get(cell.workload), after.get(cell.workload)
    if held[0] is not None and held[1] is not None and held[1].cell != cell:
        ratio = relative(per_example(new), per_example(held[1]), per_example(base), per_example(held[0]))
        change = _change(cell, base, new, judged(ratio, min_effect), ratio)
        once = "seen once, in two runs; dpbench ab times both in turns and confirms it"
        return replace(change, reason=once if change.verdict in _DIFFERS else _too_few(ratio))
    change = as_they_are(cell, base, new, min_effect)
    if change.verdict in _DIFFERS:
        reason = f"{change.verdict}, or this machine was, as two runs share no clock; dpbench ab times both in turns"
        return replace(change, verdict=Verdict.INCONCLUSIVE, reason=reason)
    return change


def as_they_are(cell: Cell, base: Record, new: Record, min_effect: float = MIN_EFFECT) -> Change:
    """Times of two runs, as if the machine had been the same all the while."""
    ratio = independent(per_example(new), per_example(base))
    return replace(_change(cell, base, new, judged(ratio, min_effect), ratio), reason=_too_few(ratio))


def per_example(record: Record, name: str = SECONDS) -> list[list[float]]:
    """Seconds by round: a ratio is one of throughputs, also where two take steps of different sizes."""
    metric = record.metrics.get(name)
    return [[s / record.examples for s in r] for r in metric.samples] if metric and record.examples else []


def _too_few(ratio: Ratio | None) -> str:
    if ratio is None:
        return "no round in both"
    if not math.isfinite(ratio.value):
        return "a time that is no number"
    return f"{ratio.rounds} rounds, an interval needs {MIN_ROUNDS}" if ratio.low is None else ""


def _change(cell: Cell, base: Record, new: Record, verdict: Verdict, ratio: Ratio | None) -> Change:
    typical = [stats.typical(per_example(r)) for r in (base, new)]
    values = [None if t is None else t.value for t in typical]
    return Change(cell=cell, quantity="seconds", verdict=verdict, base=values[0], new=values[1], ratio=ratio)
