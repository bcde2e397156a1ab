"""The summary of a report: sentences made from the numbers, none of which says more than they do.

Nothing is averaged over workloads, files or machines: over several workloads the range is given. Of two
implementations one is called faster where the interval of their ratio, from rounds timed in turns, lies above 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dpbench.document.sources import Material
from dpbench.document.standing import Fastest, comparable, leanest
from dpbench.document.trust import warnings
from dpbench.records import Outcome
from dpbench.reporting import palette
from dpbench.reporting.numbers import ratio, significant, size
from dpbench.reporting.remarks import named, said_of
from dpbench.reporting.summary import outcomes
from dpbench.rows import Row

SPELLED_OUT = 6
"""So many workloads are told one by one; of more, over all of a source together."""
MENTIONED = 3
HUNGRY = 2.0
"""Times the memory of the baseline: what takes more is named."""


def sentences(material: Material, standing: Material | None = None) -> Iterator[str]:
    """What was found: wrong gradients first, then what makes figures doubtful, then who is fastest.

    ``standing``: of what it is told who is fastest and leanest, where that is less than everything.
    """
    if not material.rows:
        yield (
            "No cell has been run yet: the files hold no record."
            if not material.expression
            else f"No cell that matches -k {material.expression} has been run yet."
        )
        if material.missing:
            yield f"Still to be run: {len(material.missing)}."
        return
    yield from _wrong(material)
    yield _counted(material)
    yield from (f"{said}." for said in warnings(material))
    told = material if standing is None else standing
    if told.rows:
        yield from _named(told)
    yield from _standing(told)
    yield from _died(material)


def _named(material: Material) -> Iterator[str]:
    """What the names of workloads leave out: without it a model of one layer would be read as a whole one."""
    labels = material.labels
    said = [f"every workload has {labels.common}"] if labels.common else []
    said += [f"{short} stands for {model}" for short, model in labels.models.items()]
    if said:
        yield f"Below, {'; '.join(said)}."


def _standing(material: Material) -> Iterator[str]:
    """Who is fastest, leanest and hungry, of each source for itself."""
    groups = material.groups
    if len(groups) <= SPELLED_OUT:
        for (source, workload), rows in groups.items():
            first = material.fastest.get((source, workload))
            yield from _of_one(f"On {material.named(source, workload)}", rows, first)
    else:
        for source in material.by_source:
            own = [rows for key, rows in groups.items() if key[0] == source]
            standings = [found for key, found in material.fastest.items() if key[0] == source]
            yield from (_from(material, source, said) for said in _of_many(own, standings))
    yield from _hungry(material)


def _wrong(material: Material) -> Iterator[str]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in material.rows:
        if row.outcome is Outcome.WRONG:
            found.setdefault((row.file, row.implementation), []).append(row)
    for (source, name), rows in found.items():
        where = named([material.label(row.workload) for row in rows])
        of = f" (source {source})" if material.several else ""
        reason = "; ".join(said_of(rows[0]))
        yield f"{name} computes a wrong gradient on {where}{of}, and has no speed there: {reason or 'see the record'}."


def _counted(material: Material) -> str:
    rows = material.rows
    of = f", of {material.of} in the files (-k {material.expression})" if material.expression else ""
    absent = f"; {len(material.missing)} more were not run" if material.missing else ""
    failures = Counter(
        (row.implementation, row.outcome) for row in rows if row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    )
    named_ = "".join(f"; {name} {outcome} on {n}" for (name, outcome), n in failures.items())
    return f"{outcomes(rows)}{of}{absent}{named_}."


def _of_one(where: str, rows: Sequence[Row], first: Fastest | None) -> Iterator[str]:
    if first is not None:
        yield f"{where}, {_who(first)} {_beside_baseline(first.row)}."
        if said := _lead(first):
            yield said
    elif any(row.seconds is not None for row in rows):
        yield f"{where}, no private implementation has a speed of the whole work."
    if lean := leanest(rows):
        names = _list([row.implementation for row in lean])
        relative = lean[0].memory_relative
        beside = f", {ratio(relative)} times that of non-private training" if relative is not None else ""
        there = "There" if first else f"{where},"
        least = "the least memory: " if len(comparable(rows)) > 1 else ""
        yield f"{there} {names} {_needs(lean)} {least}{size(lean[0].memory or 0)}{beside}."


def _who(found: Fastest) -> str:
    name = found.row.implementation
    if found.ties:
        names = _list([name, *(row.implementation for row in found.ties)])
        return f"{names} are the fastest private implementations and cannot be told apart; {name} is"
    if found.unsure:
        return f"{name} took the least time, of too few rounds to tell whether it is the fastest,"
    if found.next is None:
        return f"{name} is the only private implementation with a speed of the whole work,"
    return f"{name} is the fastest private implementation,"


def _beside_baseline(row: Row) -> str:
    if row.speed_relative is None:
        return f"at {significant(row.examples_per_s or 0)} examples/s"
    low, high = row.speed_relative_low, row.speed_relative_high
    return f"at {ratio(row.speed_relative, low, high)} of the throughput of non-private training"


def _lead(found: Fastest) -> str:
    if found.next is None or found.lead is None:
        return ""
    lead = ratio(found.lead.value, found.lead.low, found.lead.high)
    return f"{found.row.implementation} is {lead} times as fast as {found.next.implementation}, the next."


def _from(material: Material, source: str, said: str) -> str:
    """A sentence that begins with the source where there are several, or else with a capital."""
    return f"Source {source}: {said}" if material.several else said[0].upper() + said[1:]


def _of_many(groups: Sequence[Sequence[Row]], standings: Sequence[Fastest]) -> Iterator[str]:
    """One source: who is first how often, and between which ratios."""
    rivals = [found for found in standings if found.ties or found.unsure or found.next is not None]
    if sure := [found for found in rivals if not found.unsure]:
        told = _often(found.row for found in sure if not found.ties)
        tied = sum(bool(found.ties) for found in sure)
        told += [f"several that cannot be told apart on {tied}"] if tied else []
        yield f"over {_workloads(sure)} the fastest private implementation is {', '.join(told)}."
    if unsure := [found for found in rivals if found.unsure]:
        yield (
            f"over {_workloads(unsure)} the least time was taken by "
            f"{', '.join(_often(f.row for f in unsure))}; there "
            "are too few rounds to tell whether these are the fastest."
        )
    if alone := len(standings) - len(rivals):
        yield f"but one private implementation has a speed of the whole work on {alone} of {len(groups)} workloads."
    relative = [found.row.speed_relative for found in standings if found.row.speed_relative is not None]
    if relative:
        yield (
            f"on each workload the private one that took the least time has {_range(relative)} of the throughput of "
            "non-private training."
        )
    yield from _ranges(groups)
    if lean := [own for rows in groups if len(comparable(rows)) > 1 and (own := leanest(rows))]:
        alike = " (several where peaks are alike)" if any(len(own) > 1 for own in lean) else ""
        needing = ", ".join(_often(row for own in lean for row in own))
        yield f"over {_workloads(lean)} the least memory is needed by {needing}{alike}."


def _often(rows: Iterable[Row]) -> list[str]:
    return [f"{name} on {n}" for name, n in Counter(row.implementation for row in rows).most_common()]


def _workloads(found: Sequence[object]) -> str:
    return "1 workload" if len(found) == 1 else f"{len(found)} workloads"


def _ranges(groups: Sequence[Sequence[Row]]) -> Iterator[str]:
    own: dict[str, list[float]] = {}
    for rows in groups:
        for row in comparable(rows):
            if row.speed_relative is not None:
                own.setdefault(row.implementation, []).append(row.speed_relative)
    if len(own) > 1:
        names = palette.order(set(own))
        told = ", ".join(f"{name} {_range(own[name])}" for name in names)
        yield f"of each by itself, over the workloads where it has a figure: {told}."


def _hungry(material: Material) -> Iterator[str]:
    for source, rows in material.by_source.items():
        costs: dict[str, list[float]] = {}
        for row in comparable(rows):
            if row.memory_relative is not None and not row.batch_is_max:
                costs.setdefault(row.implementation, []).append(row.memory_relative)
        dear = [name for name in palette.order(set(costs)) if max(costs[name]) >= HUNGRY]
        if dear:
            told = ", ".join(f"{name} ({_range(costs[name])} times)" for name in dear)
            yield _from(
                material, source, f"memory of {HUNGRY:g} times non-private training's or more is needed by {told}."
            )


def _died(material: Material) -> Iterator[str]:
    for source, rows in material.by_source.items():
        died = Counter(row.implementation for row in rows if row.outcome is Outcome.OUT_OF_MEMORY)
        if died:
            told = ", ".join(f"{name} on {n}" for name, n in died.most_common())
            yield _from(material, source, f"ran out of memory: {told}.")


def _range(values: Sequence[float]) -> str:
    low, high = ratio(min(values)), ratio(max(values))
    return low if low == high else f"{low} to {high}"


def _needs(rows: Sequence[Row]) -> str:
    return "needs" if len(rows) == 1 else "need"


def _list(names: Sequence[str]) -> str:
    if len(names) > MENTIONED:
        return named(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
