"""The summary of a run: for each workload who was right, how fast, and at what memory.

The same content as plain lines or, for a terminal, as rich tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpbench import stats
from dpbench.records import Outcome
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import WORDS, count, ratio, significant, size
from dpbench.reporting.remarks import said_of
from dpbench.rows import Row

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

OTHERS = 0.2
"""Of all cores, that other processes take: above it a reader is told."""

SCATTER = 0.2
"""Of a cell's timings, above which a reader is told."""

STYLES = {
    Outcome.OK: "",
    Outcome.WRONG: "bold red",
    Outcome.FAILED: "bold red",
    Outcome.TIMED_OUT: "red",
    Outcome.OUT_OF_MEMORY: "yellow",
    Outcome.REFUSED: "dim",
}
"""How the line of a cell looks in a terminal."""


@dataclass(frozen=True, slots=True)
class Block:
    """One workload."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    outcomes: tuple[Outcome, ...]
    """One for each line."""


def blocks(rows: Sequence[Row], baseline: str = "nonprivate") -> tuple[list[Block], list[str]]:
    """The content: a block for each workload of each file, and the notes that its marks refer to."""
    groups: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.file, row.workload), []).append(row)
    reasons: dict[str, int] = {}
    made = [_block(group, reasons, baseline) for group in groups.values()]
    notes = [f"[{number}] {reason}" for reason, number in reasons.items()]
    if any(row.speed_relative is not None or row.memory_relative is not None for row in rows):
        notes.append(f"ratio: to {baseline} on the same workload; error: of the gradient, to the per-example loop")
    if any(row.partial and row.outcome is Outcome.OK for row in rows):
        notes.append("where parameters got no gradient, less was computed: a ratio marked so is no plain comparison")
    if any(row.batch_is_max for row in rows):
        notes.append("B=max: each at the largest physical batch that fits, its own; their examples/s are compared")
    fewest = min((r.rounds for r in rows if r.rounds), default=stats.MIN_ROUNDS)
    if fewest < stats.MIN_ROUNDS:
        rounds = "1 round" if fewest == 1 else f"{fewest} rounds"
        brackets = "" if fewest == 1 else "; in brackets the smallest and the largest ratio of a round"
        need = f"too few for intervals, which need {stats.MIN_ROUNDS} (--rounds {stats.MIN_ROUNDS})"
        notes.append(f"{rounds}: {need}{brackets}")
    worst = max((row.scatter for row in rows if row.scatter is not None), default=0.0)
    if worst > SCATTER:
        notes.append(
            f"timings scatter, the quartiles of one cell by {worst:.0%} of its median: is other work on this machine?"
            + ("" if all(row.workload.threads == 1 for row in rows) else " Small networks are steadier on --threads 1")
        )
    if held := sum(row.throttled for row in rows):
        notes.append(f"a clock was held down in {held} rounds, which were repeated in vain: see dpbench system")
    if unsettled := [row for row in rows if row.unsettled * 2 > row.rounds]:
        cells = "1 cell" if len(unsettled) == 1 else f"{len(unsettled)} cells"
        notes.append(
            f"steps of {cells} were still getting faster when their warm-up was over; a larger --budget gives it longer"
        )
    busy = max((row.others for row in rows if row.others is not None), default=0.0)
    if busy > OTHERS:
        notes.append(f"other processes took {busy:.0%} of this machine's CPU time meanwhile: see dpbench system")
    return made, notes


def lines(rows: Sequence[Row], baseline: str = "nonprivate") -> list[str]:
    """The summary as plain lines."""
    made, notes = blocks(rows, baseline)
    text: list[str] = []
    for block in made:
        text += [block.title, *(f"  {line}" for line in aligned([block.head, *block.lines])), ""]
    return [*text, *notes, *([""] if notes else []), outcomes(rows)]


def renderable(rows: Sequence[Row], baseline: str = "nonprivate") -> Group:
    """The summary for a terminal."""
    from rich.console import Group
    from rich.text import Text

    made, notes = blocks(rows, baseline)
    return Group(*tables(made), *(Text(note, "dim") for note in notes), Text(outcomes(rows)))


def tables(made: Sequence[Block]) -> list[Table | Text]:
    """Each block for a terminal."""
    from rich.table import Table
    from rich.text import Text

    parts: list[Table | Text] = []
    for block in made:
        table = Table(box=None, title=Text(block.title, "bold"), title_justify="left", pad_edge=False)
        for i, name in enumerate(block.head):
            table.add_column(Text(name), justify="right" if i else "left", no_wrap=not i, overflow="fold")
        for line, outcome in zip(block.lines, block.outcomes, strict=True):
            table.add_row(*map(Text, line), style=STYLES[outcome])
        parts += [table, Text()]
    return parts


def outcomes(rows: Sequence[Row]) -> str:
    """``35 cells: 30 ok, 3 refused, 2 out of memory``."""
    found = Counter(row.outcome for row in rows)
    parts = [f"{found[outcome]} {outcome}" for outcome in Outcome if found[outcome]]
    cells = "1 cell" if len(rows) == 1 else f"{len(rows)} cells"
    return f"{cells}: {', '.join(parts)}" if parts else cells


def _block(group: Sequence[Row], reasons: dict[str, int], baseline: str) -> Block:
    has_tokens = any(row.tokens_per_s is not None for row in group)
    head = ["implementation", "error", "examples/s", "tokens/s", "ratio", "memory", "ratio"]
    made = [_line(row, reasons, baseline) for row in group]
    if not has_tokens:
        head.pop(3)
        for line in made:
            line.pop(3)
    if group[0].batch_is_max:
        head.insert(1, "B")
        for line, row in zip(made, group, strict=True):
            line.insert(1, "-" if row.batch is None else str(row.batch))
    title = group[0].workload.label()
    if group[0].parameters:
        title += f"  ({count(group[0].parameters)} parameters)"
    return Block(title, tuple(head), tuple(map(tuple, made)), tuple(row.outcome for row in group))


def _line(row: Row, reasons: dict[str, int], baseline: str) -> list[str]:
    error = "-" if row.parity_error is None else f"{row.parity_error:.1e}"
    marks = [f" [{reasons.setdefault(said, len(reasons) + 1)}]" for said in said_of(row)]
    if row.outcome is not Outcome.OK:
        return [row.implementation, error, WORDS[row.outcome] + "".join(marks), "", "", "", ""]
    less = marks[0] if row.partial else ""
    return [
        row.implementation,
        error,
        ("-" if row.examples_per_s is None else significant(row.examples_per_s)) + "".join(marks),
        "-" if row.tokens_per_s is None else significant(row.tokens_per_s),
        speed_ratio(row, baseline) + less,
        "-" if row.memory is None else size(row.memory),
        ("-" if row.memory_relative is None else ratio(row.memory_relative)) + less,
    ]


def speed_ratio(row: Row, baseline: str) -> str:
    """With its interval; where there are too few rounds for one, with the smallest and the largest of a round."""
    if row.speed_relative is None:
        return "-"
    if row.implementation == baseline:
        return ratio(row.speed_relative)
    text = ratio(row.speed_relative, row.speed_relative_low, row.speed_relative_high)
    smallest, largest = row.speed_relative_smallest, row.speed_relative_largest
    if row.speed_relative_low is None and row.rounds > 1 and smallest is not None and largest is not None:
        text += f" [{ratio(smallest)}-{ratio(largest)}]"
    return text
