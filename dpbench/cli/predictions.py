"""Predictions of one workload as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dpbench.cards import HERE, Card
from dpbench.complexity.modules import is_readable, parts
from dpbench.complexity.prediction import Prediction
from dpbench.complexity.trace import MODULES
from dpbench.papers import leading_terms
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import count, duration, ratio, significant, size

SHOWN = 3
"""How many of the things that are alive at a peak are named."""


def lines(made: Sequence[Prediction], card: Card | None = None) -> list[str]:
    """What people want to know first: time and memory beside non-private; then where the FLOPs are."""
    found = [p for p in made if p.trace]
    first = (found or made)[0]
    there = max((p.trace.resident for p in made if p.trace), default=0)
    workload = replace(first.workload, batch="max") if differ(found) else first.workload
    head = f"{workload.label()}  ({count(first.parameters)} parameters, {size(there)} before the step)"
    if not found:
        return [head, *refusals(made)]
    return [
        head,
        *(f"  {line}" for line in aligned(costs(found, card), text_last=True)),
        "",
        *(f"  {line}" for line in aligned(by_module(found))),
        "",
        *meanings(found, card),
        *notes(found),
        *refusals(made),
    ]


def differ(found: Sequence[Prediction]) -> bool:
    """Whether each has a largest batch of its own."""
    return len({p.workload.physical for p in found}) > 1


def costs(found: Sequence[Prediction], card: Card | None) -> list[list[str]]:
    """Time on a card, FLOPs and peak, each beside the baseline."""
    base = next((p for p in found if p.implementation == "nonprivate"), None)
    head = ["implementation", "FLOPs", "ratio", "peak", "ratio", "alive at the peak"]
    several = differ(found)
    names = [head[0], *(["B"] if several else [])]
    table = [[*names, *([] if card is None else [card.name, "range", "examples/s", "ratio"]), *head[1:]]]
    for p in found:
        assert p.trace is not None
        t, b = p.trace, base.trace if base else None
        each = t.total / p.workload.physical
        row = [count(t.total), ratio(each / b.total * base.workload.physical) if base and b and b.total else "-"]
        row += [size(t.peak), ratio(t.peak / b.peak) if b and b.peak else "-", alive(p)]
        if p.seconds:
            s, faster = p.seconds, ratio(rate(p) / rate(base)) if base and base.seconds else "-"
            row = [duration(s.expected), f"{duration(s.low)} - {duration(s.high)}", significant(rate(p)), faster, *row]
        table.append([p.implementation, *([str(p.workload.physical)] if several else []), *row])
    return table


def rate(p: Prediction) -> float:
    """Examples per second on the card."""
    assert p.seconds is not None
    return p.workload.physical / p.seconds.expected


def alive(p: Prediction) -> str:
    """The largest of what is alive at the peak: ``61 % 1: lm_head``."""
    assert p.trace is not None
    largest = sorted(p.trace.alive.items(), key=lambda item: -item[1])[:SHOWN]
    return ", ".join(f"{100 * value / p.trace.peak:.0f}% {label}" for label, value in largest if p.trace.peak)


def by_module(found: Sequence[Prediction]) -> list[list[str]]:
    """FLOPs by module, of products between activations, and how far the paper's formulas are from that."""
    rows = {p.implementation: folded(p) for p in found}
    shown = [m for m in MODULES if any(row.get(m) for row in rows.values())]
    others = any(p.trace and p.trace.others for p in found)
    table = [["FLOPs by module", *shown, *(["attention"] if others else []), "formula"]]
    for p in found:
        assert p.trace is not None
        row = [count(rows[p.implementation].get(m, 0)) if rows[p.implementation].get(m) else "" for m in shown]
        apart = p.trace.total - sum(p.trace.others.values())
        formula = "-" if p.analytic is None else "=" if p.analytic.total() == apart else _percent(p.analytic, apart)
        table.append([p.implementation, *row, *([count(sum(p.trace.others.values()))] if others else []), formula])
    return table


def _percent(analytic: Counter[str], traced: int) -> str:
    if not traced:
        return "-"
    apart = 100 * (analytic.total() / traced - 1)
    return f"{'-' if apart < 0 else '+'}{significant(abs(apart), 2)}%"


def folded(p: Prediction) -> dict[str, int]:
    """FLOPs by module, those of a second backward together."""
    assert p.trace is not None
    total: dict[str, int] = {}
    for module, flops in p.trace.flops.items():
        name = "again" if module.endswith("again") else module
        total[name] = total.get(name, 0) + flops
    return total


def recomputes(found: Sequence[Prediction]) -> bool:
    """Whether activations are computed again."""
    return any(p.workload.checkpointing or p.workload.loss_chunk for p in found)


def meanings(found: Sequence[Prediction], card: Card | None) -> list[str]:
    """What the columns are."""
    modules = {m for p in found for m in folded(p)}
    return [
        "; ".join(f"{m}: {text}" for m, text in MODULES.items() if m in modules),
        "attention: products between activations, which no formula of a weight counts",
        "formula: the paper's for these modules, against the trace without attention; = where they are equal",
        *(["ratio of FLOPs: for each example"] if differ(found) else []),
        *(["1: also what is computed again in the backward, which is in no formula"] if recomputes(found) else []),
        "peak: bytes above what is there before the step: parameters, buffers, batch, the optimizer's state",
        *(
            [
                f"{card.name}: a roofline, {card.source}; fusion and caches are not modelled"
                if card.name.startswith(HERE)
                else f"{card.name}: a roofline of published peaks, which no kernel reaches; fusion and caches are not "
                "modelled. It compares implementations; a step will take longer."
            ]
            if card
            else []
        ),
    ]


def notes(found: Sequence[Prediction]) -> list[str]:
    """Where a trace, its kernels, or the paper's own figure say something else than the formulas."""
    said = []
    for p in found:
        stated, counted = leading_terms().get(p.implementation), leading(p.modules)
        if stated and counted and stated != counted:
            said.append(
                f"{p.implementation}: the paper states {stated:g} BTpd for large T; its modules, {p.modules}, at "
                f"2 BTpd each make {counted}, which is what runs"
            )
        if p.on == "real":
            said.append(
                f"{p.implementation}: traced on real tensors of small batches and extrapolated along a line, above "
                "which its peak may lie"
            )
        if p.unexplained:
            worst = sorted(p.unexplained.items(), key=lambda item: -abs(item[1]))[:SHOWN]
            text = ", ".join(f"{count_signed(flops)} in {module} of {name}" for (module, name), flops in worst)
            more = len(p.unexplained) - len(worst)
            said.append(f"{p.implementation}: other kernels than those counted: {text}" + f", {more} more" * (more > 0))
    return said


def leading(modules: str) -> int | None:
    """The multiple of BTpd that these modules make for large T, ghost norms apart; None where they differ by layer."""
    if " or " in modules or not is_readable(modules):
        return None
    return 2 * sum(m.split()[0] in ("1", "2a", "2b", "4") for m in parts(modules, ghost=True))


def count_signed(value: int) -> str:
    """A count with its sign."""
    return f"{'-' if value < 0 else '+'}{count(abs(value))}"


def refusals(made: Sequence[Prediction]) -> list[str]:
    """Who has no figures, and why."""
    return [f"{p.implementation} refuses: {p.reason}" for p in made if p.trace is None]
