"""Verdicts as lines of text and as JSON."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from dpbench.conformance.verdict import BESIDE, Ruling, Verdict
from dpbench.records import plain
from dpbench.reporting.columns import aligned

if TYPE_CHECKING:
    from dpbench.conformance.candidate import Candidate
    from dpbench.conformance.checks import Check


def block(who: Candidate, verdicts: Sequence[Verdict], *, everything: bool = False) -> str:
    """All of one implementation: a line for each family, and one for whatever is not right."""
    tolerance = next((v.tolerance for v in verdicts if v.precision == "float64" and v.tolerance), None)
    said = "" if tolerance is None else f", float64, tolerance {tolerance:g}, R at the median norm"
    lines = [f"{who.name}  {who.title}{said}"]
    families: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        families.setdefault(verdict.check.partition("/")[0], []).append(verdict)
    table = [["", "", "error", *BESIDE]]
    table += [[family, _tally(members), *_worst(members)] for family, members in families.items()]
    summary = aligned(table, left=2)
    lines.append(f"  {summary[0]}")
    for row, members in zip(summary[1:], families.values(), strict=True):
        lines.append(f"  {row}")
        for verdict in members:
            if everything or verdict.ruling is not Ruling.RIGHT or who.surprise(verdict):
                lines += _lines(who, verdict)
    return "\n".join(lines)


def _tally(verdicts: Iterable[Verdict]) -> str:
    count = Counter(v.ruling for v in verdicts)
    return ", ".join(f"{count[ruling]} {ruling}" for ruling in Ruling if count[ruling])


def _worst(verdicts: Sequence[Verdict]) -> list[str]:
    """Of those that are right: the largest error in float64, and in other precisions over the loop's own."""
    right = [v for v in verdicts if v.ruling in (Ruling.RIGHT, Ruling.FREEZES)]
    errors = [v.error for v in right if v.error is not None and v.precision == "float64"]
    cells = [f"{max(errors):.0e}" if errors else ""]
    for precision in BESIDE:
        times = [t for v in right if (n := v.native.get(precision)) and (t := n.times_loop) is not None]
        cells.append(f"{max(times):.1f} x" if times else "")
    return cells


def _lines(who: Candidate, verdict: Verdict) -> list[str]:
    width = max(60, shutil.get_terminal_size((110, 24)).columns)
    text = f"{verdict.check.partition('/')[2]}: {told(verdict)}"
    if surprise := who.surprise(verdict):
        text = f"! {text}  [{surprise}]"
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="        ")


def told(verdict: Verdict) -> str:
    """One verdict in words."""
    ruling = verdict.ruling
    if ruling is Ruling.REFUSES:
        return f"refuses: {verdict.message}"
    if ruling is Ruling.CRASHES:
        return f"crashes: {verdict.message}"
    if ruling is Ruling.WRONG:
        text = verdict.message or f"{_number(verdict.error)} in {verdict.worst}"
        return f"wrong: {text}" + (f"; {verdict.figure}" if verdict.figure else "")
    beside = ", ".join(f"{name} {_number(n.error)} (loop {_number(n.loop)})" for name, n in verdict.native.items())
    error = f"{_number(verdict.error)}" + (f" ({verdict.precision})" if verdict.precision != "float64" else "")
    parts = [part for part in (error, beside, verdict.figure) if part]
    if ruling is Ruling.FREEZES:
        names = ", ".join(verdict.frozen[:4]) + (", ..." if len(verdict.frozen) > 4 else "")
        return f"freezes {len(verdict.frozen)} of {verdict.asked} parameters ({names}); {'; '.join(parts)}"
    return f"right: {verdict.message or '; '.join(parts)}"


def _number(value: float | None) -> str:
    return "raises" if value is None else f"{value:.1e}"


def counts(everyone: Sequence[tuple[Candidate, Sequence[Verdict]]]) -> str:
    """How many of each ruling, an implementation a line."""
    table = [["implementation", *map(str, Ruling), "of"]]
    for who, verdicts in everyone:
        count = Counter(v.ruling for v in verdicts)
        table.append([who.name, *(str(count[ruling]) for ruling in Ruling), str(len(verdicts))])
    return "\n".join(aligned(table))


def line(who: Candidate, check: Check, verdict: Verdict) -> str:
    """Everything about one verdict, as one line of JSON."""
    known = who.expected.of(verdict.check)
    about = {
        "title": who.title,
        "source": who.source,
        "reason": check.reason,
        "reported": check.source,
        "declared": None if known is None else {"ruling": known.ruling, "reason": known.reason},
        "surprise": who.surprise(verdict),
    }
    return json.dumps(plain({**asdict(verdict), **about, **_where()}), allow_nan=False)


@cache
def _where() -> dict[str, str]:
    from importlib.metadata import version

    return {"torch": version("torch"), "dpbench": version("dpsgd-bench"), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
