"""What is shown while a run goes on: lines, a live table on a terminal, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from dpbench.cli.said import say
from dpbench.records import MAX, Cell, Outcome, Record, Workload, to_json
from dpbench.reporting import summary
from dpbench.reporting.numbers import WORDS, significant, size
from dpbench.reporting.remarks import remarks, said_of
from dpbench.results import read
from dpbench.rows import Row, rows
from dpbench.runner import FIT, Event
from dpbench.sweep import Started


class Watch(Protocol):
    """Hears of everything that happens in a run."""

    def say(self, text: str) -> None:
        """A remark."""
        ...

    def on(self, event: Started | Event) -> None:
        """Something happened."""
        ...

    def end(self) -> None:
        """The run is over."""
        ...

    def interrupted(self) -> None:
        """The run was broken off."""
        ...


def watch(as_json: bool) -> AbstractContextManager[Watch]:
    """The one that fits: JSON where asked for, else a live table on a terminal, else lines."""
    if as_json:
        return nullcontext(Json())
    if sys.stdout.isatty():
        from dpbench.cli.live import Live

        return Live()
    return nullcontext(Lines())


class Json:
    """One record a line on stdout; everything else is on stderr."""

    def say(self, text: str) -> None:
        """On stderr."""
        say(text)

    def on(self, event: Started | Event) -> None:
        """A record at once; what was done before, first."""
        for record in event.done if isinstance(event, Started) else [event]:
            if isinstance(record, Record):
                print(to_json(record), flush=True)

    def end(self) -> None:
        """Nothing more."""

    def interrupted(self) -> None:
        """Nothing more: the exit code says so."""


class Lines:
    """Each result as it comes, and the summary at the end."""

    def __init__(self, write: Callable[[str], None] = lambda text: print(text, flush=True)) -> None:
        self._write = write
        self._path: Path | None = None
        self._records: list[Record] = []
        self._workload: Workload | None = None
        self._count = self._done = 0

    def say(self, text: str) -> None:
        """As a line of its own, on stderr."""
        say(text)

    def on(self, event: Started | Event) -> None:
        """A heading, or a line for each record and, on stderr, for each batch that is searched for."""
        if isinstance(event, Started):
            self._path, self._count, self._done = event.path, len(event.cells), len(event.done)
            self._records = list(event.done)
            for line in heading(event):
                self._write(line)
        elif isinstance(event, Record):
            self._records.append(event)
            self._done += 1
            if event.cell.workload != self._workload:
                self._workload = event.cell.workload
                self._write(f"\n{self._workload.label()}")
            number = f"{self._done:>{len(str(self._count))}}/{self._count}"
            self._write(f"  [{number}] {line_of(rows(self._records)[-1])}")
        elif event.phase == FIT and event.implementation is not None:
            self.say(f"  {event.implementation}: its largest batch is traced")

    def end(self) -> None:
        """The summary, and what to do next."""
        assert self._path is not None
        made = rows(read(self._path))
        self._write("")
        for line in [*summary.lines(made), *closing(self._path, made)]:
            self._write(line)

    def interrupted(self) -> None:
        """How to go on."""
        self.say(broken_off(self._path, self._done, self._count))


def broken_off(path: Path | None, done: int, count: int) -> str:
    """What is left of a run that was broken off."""
    if path is None:
        return "interrupted before anything was measured"
    return f"interrupted: {done} of {count} cells are done; go on with: dpbench run --resume {path}"


def heading(event: Started) -> list[str]:
    """What is going to be measured, on what."""
    from dpbench.environment import describe

    workloads = list(dict.fromkeys(cell.workload for cell in event.cells))
    steps = list(dict.fromkeys(w.step for w in workloads))
    devices = list(dict.fromkeys((w.device, w.threads) for w in workloads))
    threads = event.environment["flags"]["threads"]
    lines = [f"{len(event.cells)} cells on {len(workloads)} workloads -> {event.path}"]
    if event.done:
        lines = [f"resuming, {len(event.done)} of {len(event.cells)} done -> {event.path}"]
    lines.append(describe(dict(event.environment)))
    lines += [f"device {device}, {threads if given is None else given} threads" for device, given in devices]
    lines += [f"step: {step_says(step)}" for step in steps]
    if any(w.batch == MAX for w in workloads):
        memory = event.environment["settings"]["memory"] or "the card's memory"
        lines.append(f"B=max: the largest physical batch whose step fits into {memory}, found by tracing")
    lines += [f"clipping: {said}" for said in formulas(event.cells)]
    return lines


def step_says(step: str) -> str:
    """The name of a step and what it is."""
    from dpbench.step import SAYS

    return f"{step} ({SAYS[step]})"


def formulas(cells: Iterable[Cell]) -> list[str]:
    """How the workloads clip, and who does it with a stability constant of his own."""
    from dpbench.built import clip_of
    from dpbench.preparation import settled

    own: dict[str, list[str]] = {}
    for cell in cells:
        clip = clip_of(cell.workload)
        settled_on = settled(cell.implementation, clip)
        names = own.setdefault(str(settled_on), [])
        if settled_on != clip and cell.implementation not in names:
            names.append(cell.implementation)
    return [f"{text} ({', '.join(names)})" if names else text for text, names in own.items()]


def line_of(row: Row) -> str:
    """One result in one line."""
    text = f"{row.implementation:22}"
    if row.outcome is not Outcome.OK:
        return f"{text} {WORDS[row.outcome]}: {'; '.join(said_of(row))}"
    figures = [
        f"B={row.batch}" if row.batch_is_max else "",
        "" if row.examples_per_s is None else f"{significant(row.examples_per_s):>8} examples/s",
        "" if row.speed_relative is None else f"x{row.speed_relative:.2f}",
        "" if row.memory is None else f"{size(row.memory):>8}",
        "" if row.memory_relative is None else f"x{row.memory_relative:.2f}",
        "" if row.parity_error is None else f"error {row.parity_error:.0e}",
        *remarks(row),
    ]
    return f"{text} {'  '.join(f for f in figures if f)}"


def closing(path: Path, made: list[Row]) -> list[str]:
    """Where everything lies, and what one would do next."""
    from dpbench.reporting import plots

    lines = ["", f"results  {path}"]
    drawn: list[Path] = []
    try:
        drawn = plots.draw_all(made, path)
    except OSError as error:
        lines.append(f"no plots: {error.strerror}; make room and have them drawn with: dpbench run --resume {path}")
    lines += [f"plot     {plot}" for plot in drawn if plot.suffix == ".png"]
    if any(plot.suffix == ".svg" for plot in drawn):
        lines.append("         (and as .svg)")
    if any(row.seconds is not None or row.memory is not None for row in made):
        lines.append(f"next     dpbench show {path}")
        lines.append(f"         dpbench table {path} --value memory --relative-to nonprivate")
    return lines
