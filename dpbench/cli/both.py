"""Two sides that are being measured, as one watches them: progress on stderr, each pair of cells as it is finished."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import closing

import typer

from dpbench.ab import Compared, Opened
from dpbench.change import Change, Verdict
from dpbench.cli.run import INTERRUPTED
from dpbench.comparison import Pair, of_pair
from dpbench.records import Cell
from dpbench.reporting import changes as reporting
from dpbench.reporting.columns import aligned
from dpbench.reporting.summary import OTHERS
from dpbench.runner import Event, Progress
from dpbench.slowdown import judged, of_one_run
from dpbench.stats import median


def watched(events: Generator[Opened | Event | Compared], min_effect: float) -> tuple[list[Compared], list[Change]]:
    """Everything that is compared, once all is; interrupted, it exits so."""
    made: list[Compared] = []
    changes: list[Change] = []
    showing = _Showing()
    try:
        with closing(events), showing:
            for event in events:
                if isinstance(event, Opened):
                    showing.line(f"{len(event.cells)} pairs of cells -> {event.base}")
                    showing.line(f"{' ' * len(f'{len(event.cells)} pairs of cells ')}-> {event.new}")
                elif isinstance(event, Progress):
                    showing.at(event)
                elif isinstance(event, Compared):
                    made.append(event)
                    own = changes_of(event, min_effect)
                    changes += own
                    showing.line(line_of(event.new.cell, own))
    except KeyboardInterrupt:
        print(f"interrupted: {len(made)} pairs of cells were finished; they are in the files", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    return made, changes


def changes_of(made: Compared, min_effect: float) -> list[Change]:
    """What one pair says."""

    def times(cell: Cell, base: object, new: object) -> Change:
        return of_one_run(cell, made.base, made.new, min_effect)

    return of_pair(Pair(made.new.cell, made.base, made.new), times)


def line_of(cell: Cell, changes: list[Change]) -> str:
    """One pair in one line: what is not the same, or that all is."""
    shown = [c for c in changes if c.verdict is not Verdict.SAME or c.quantity == "seconds"]
    parts = [
        " ".join(p for p in (c.quantity, reporting.said(c), reporting.interval(c.ratio, c.verdict)) if p) for c in shown
    ]
    return f"{cell.implementation:18} {cell.workload.label()}: {'; '.join(parts) or 'same'}"


def controls(made: list[Compared], changes: list[Change], min_effect: float) -> list[str]:
    """The base beside itself: how far apart two sides come that are one."""
    called = {pair.new.cell: pair.base.cell for pair in made}
    lines = []
    for ratio, cell in ((c.control, called[c.cell]) for c in changes if c.control is not None):
        assert ratio is not None
        between = reporting.interval(ratio, Verdict.SLOWER)
        said = str(judged(ratio, min_effect))
        lines.append((cell.implementation, cell.workload.label(), f"{ratio.value:.3f}x", between, said))
    if not lines:
        return []
    taken = [o for p in made for r in (*p.base.rounds, *p.new.rounds) if (o := r.state.others) is not None]
    busy = median(taken) if taken else 0.0
    others = [f"other processes took {busy:.0%} of this machine's CPU time meanwhile: see dpbench system"]
    control = ["", "control: the base beside itself, timed in the same turns", *(f"  {x}" for x in aligned(lines, 2))]
    return [*control, *(others if busy > OTHERS else [])]


class _Showing:
    """Lines on stderr, and on a terminal what is being done below them."""

    def __init__(self) -> None:
        self._status = None
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("")

    def __enter__(self) -> _Showing:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status:
            self._status.stop()

    def line(self, text: str) -> None:
        """Something that stays."""
        if self._status:
            from rich.text import Text

            self._status.console.print(Text(text))
        else:
            print(text, file=sys.stderr, flush=True)

    def at(self, progress: Progress) -> None:
        """What is being done."""
        if self._status:
            from rich.text import Text

            who = progress.implementation or "building"
            self._status.update(Text(f"{progress.done:4.0%}  {progress.workload.label()}: {progress.phase}, {who}"))
