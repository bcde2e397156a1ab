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
from dpbench.ratios import Ratio, against_both, independent, paired, pooled, relative
from dpbench.records import Cell, Record, Workload
from dpbench.stats import MIN_ROUNDS
from dpbench.timed import AGAIN, CONTROL, CONTROL_AGAIN, SECONDS

MIN_EFFECT = 0.03
"""A difference in time that is smaller is none, however sure it is."""

BETWEEN_RUNS = 0.10
"""Below this, two runs of the same code were seen to differ, with intervals that left out none at all."""

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
    """Two sides that were timed in turns, the base twice: a difference counts if it is one to each of the two.

    Where it was repeated, both times have to say the same.
    """
    twice = new if CONTROL in new.metrics else base
    control = paired(per_example(twice, CONTROL), per_example(twice), seed=2)
    first, verdict, reason = _in_turns(base, new, SECONDS, CONTROL, min_effect)
    reason = new.reason or reason
    if AGAIN in new.metrics or AGAIN in base.metrics:
        again, second, _ = _in_turns(base, new, AGAIN, CONTROL_AGAIN, min_effect)
        if second is not verdict:
            verdict, reason = Verdict.INCONCLUSIVE, f"{verdict} at first, {second} when it was repeated"
        first = pooled([r for r in (first, again) if r is not None])
    if verdict is not Verdict.SAME and (unsettled := _unsettled(base, new)):
        reason = f"{reason}; {unsettled}" if reason else unsettled
    return replace(_change(cell, base, new, verdict, first), control=control, reason=reason)


def _in_turns(
    base: Record, new: Record, name: str, control: str, min_effect: float
) -> tuple[Ratio | None, Verdict, str]:
    """One pass of rounds: the ratio to both times of the base, where there are two, and what follows from it."""
    seed = int(name == AGAIN)
    alone = paired(per_example(new, name), per_example(base, name), seed)
    if control in base.metrics:
        others = paired(per_example(new, name), per_example(base, control), seed)
        both = against_both(per_example(new, name), per_example(base, name), per_example(base, control), seed)
    elif control in new.metrics:
        others = paired(per_example(new, control), per_example(base, name), seed)
        both = _turned(against_both(per_example(base, name), per_example(new, name), per_example(new, control), seed))
    else:
        return alone, judged(alone, min_effect), _too_few(alone)
    verdict = judged(both, min_effect)
    if verdict in _DIFFERS and not (_beyond(alone, verdict) and _beyond(others, verdict)):
        reason = "the base differs from itself by as much: other work on this machine?"
        return both, Verdict.INCONCLUSIVE, reason
    return both, verdict, _too_few(both)


def _turned(ratio: Ratio | None) -> Ratio | None:
    """Base to new as new to base."""
    if ratio is None or ratio.low is None or ratio.high is None or ratio.log_replicates is None:
        return ratio if ratio is None else replace(ratio, value=1 / ratio.value)
    return Ratio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.rounds, -ratio.log_replicates)


def _beyond(ratio: Ratio | None, verdict: Verdict) -> bool:
    """Whether its interval leaves out none at all, on the side of the verdict."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 if verdict is Verdict.SLOWER else ratio.high < 1


def _unsettled(base: Record, new: Record) -> str:
    rounds = [*base.rounds, *new.rounds]
    if 2 * sum(not r.settled for r in rounds) <= len(rounds):
        return ""
    return "steps were still getting faster when their warm-up was over (--budget gives it longer)"


def of_two_runs(
    cell: Cell, base: Record, new: Record, before: References, after: References, min_effect: float = MIN_EFFECT
) -> Change:
    """Sides of two runs, relative to the reference of each.

    Runs differ by more than their rounds show, so that nothing is concluded of less than ``BETWEEN_RUNS``. What has no
    reference, the reference itself among it, may differ because the machine did: of that nothing is concluded at all.
    """
    strict = max(min_effect, BETWEEN_RUNS)
    held = before.get(cell.workload), after.get(cell.workload)
    if held[0] is not None and held[1] is not None and held[1].cell != cell:
        ratio = relative(per_example(new), per_example(held[1]), per_example(base), per_example(held[0]))
        verdict = judged(ratio, strict)
        if verdict in _DIFFERS and not _beyond_by(ratio, strict):
            verdict = Verdict.INCONCLUSIVE
        change = _change(cell, base, new, verdict, ratio)
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


def _beyond_by(ratio: Ratio | None, effect: float) -> bool:
    """Whether all of its interval lies further out than ``effect``."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 + effect or ratio.high < 1 / (1 + effect)


def _too_few(ratio: Ratio | None) -> str:
    if ratio is None:
        return "no round in both"
    if not math.isfinite(ratio.value):
        return "a time that is no number"
    return f"{ratio.rounds} rounds, an interval needs {MIN_ROUNDS}" if ratio.low is None else ""


def _change(cell: Cell, base: Record, new: Record, verdict: Verdict, ratio: Ratio | None) -> Change:
    # Of a step, as people know it; of one example where steps are of different sizes.
    size = base.examples or 1 if base.examples == new.examples else 1
    typical = [stats.typical(per_example(r)) for r in (base, new)]
    values = [None if t is None else t.value * size for t in typical]
    return Change(cell=cell, quantity="seconds", verdict=verdict, base=values[0], new=values[1], ratio=ratio)
