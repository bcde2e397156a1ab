"""What a reader is warned of: figures from few rounds, that scatter, or that were disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dpbench.document.sources import Material, sources
from dpbench.records import Outcome
from dpbench.reporting.summary import OTHERS, SCATTER
from dpbench.rows import Row
from dpbench.stats import MIN_ROUNDS


def warnings(material: Material) -> Iterator[str]:
    """One sentence for each, with the sources that it is true of where there are several."""
    for said, rows in _of(material):
        of = f"{sources(row.file for row in rows)}: " if material.several else ""
        yield of + said if of else said[0].upper() + said[1:]


def _of(material: Material) -> Iterator[tuple[str, Sequence[Row]]]:
    """What is said, and of which rows."""
    timed = [row for row in material.rows if row.rounds]
    if few := [row for row in timed if row.rounds < MIN_ROUNDS]:
        least = min(row.rounds for row in few)
        rounds = "1 round" if least == 1 else f"{least} rounds"
        yield (
            f"{_cells(few)} {_have(few)} as few as {rounds}: an interval needs {MIN_ROUNDS}, and differences between "
            "such cells are not claimed",
            few,
        )
    if scattered := [row for row in timed if (row.scatter or 0.0) > SCATTER]:
        worst = max(scattered, key=lambda row: row.scatter or 0.0)
        yield (
            f"timings of {_cells(scattered)} scatter by more than {SCATTER:.0%} of their median between the quartiles, "
            f"those of {worst.implementation} on {material.named(worst.file, worst.workload)} by {worst.scatter:.0%}",
            scattered,
        )
    if unsettled := [row for row in timed if row.unsettled * 2 > row.rounds]:
        yield f"steps of {_cells(unsettled)} were still getting faster when their warm-up was over", unsettled
    if throttled := [row for row in timed if row.throttled]:
        yield f"a clock was held down in rounds of {_cells(throttled)}, which were repeated in vain", throttled
    if busy := [row for row in timed if (row.others or 0.0) > OTHERS]:
        most = max(row.others or 0.0 for row in busy)
        whose = f"the machine's CPU time while {_cells(busy)} {_was(busy)} timed"
        yield f"other processes took up to {most:.0%} of {whose}", busy
    if partial := [row for row in material.rows if row.partial and row.outcome is Outcome.OK]:
        names = Counter(row.implementation for row in partial)
        yield (
            f"{_cells(partial)} ({', '.join(f'{name}: {n}' for name, n in names.items())}) trained only part of what "
            "was asked: their figures are of less work, and none is called fastest or leanest",
            partial,
        )


def _cells(rows: Sequence[Row]) -> str:
    return "1 cell" if len(rows) == 1 else f"{len(rows)} cells"


def _was(rows: Sequence[Row]) -> str:
    return "was" if len(rows) == 1 else "were"


def _have(rows: Sequence[Row]) -> str:
    return "has" if len(rows) == 1 else "have"
