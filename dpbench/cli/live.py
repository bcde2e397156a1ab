"""The live table: the workload at hand, who is at work on it, how far the run is and how long it will take."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dpbench.cli.watch import broken_off, closing, heading, line_of
from dpbench.records import Record, Workload
from dpbench.reporting import summary
from dpbench.results import read
from dpbench.rows import rows
from dpbench.runner import Event, Progress
from dpbench.sweep import Started


class Live:
    """Shows a run on a terminal; finished workloads stay above as tables."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._event: Started | None = None
        self._progress: Progress | None = None
        self._records: list[Record] = []
        self._finished: dict[Workload, list[Record]] = {}
        self._since = time.monotonic()
        self._screen = Screen(console=self._console, refresh_per_second=4, transient=True, get_renderable=self._draw)

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._screen.stop()

    def say(self, text: str) -> None:
        """A remark above the table."""
        self._console.print(Text(text, "yellow"))

    def on(self, event: Started | Event) -> None:
        """Take note of it; the screen looks again by itself."""
        if isinstance(event, Started):
            self._event = event
            for line in heading(event):
                self._console.print(Text(line))
            self._since = time.monotonic()
            self._screen.start()
        elif isinstance(event, Progress):
            if self._progress is not None and event.workload != self._progress.workload:
                self._leave(self._progress.workload)
            self._progress = event
        else:
            self._records.append(event)

    def end(self) -> None:
        """The last workload's table, the files and what to do next."""
        if self._progress is not None:
            self._leave(self._progress.workload)
        self._screen.stop()
        assert self._event is not None
        made = rows(read(self._event.path))
        for note in summary.blocks(made)[1]:
            if not note.startswith("["):
                self._console.print(Text(note, "dim"))
        self._console.print(summary.outcomes(made))
        for line in closing(self._event.path, made):
            self._console.print(Text(line), soft_wrap=True)

    def interrupted(self) -> None:
        """What was measured, and how to go on."""
        self._screen.stop()
        if self._progress is not None:
            self._leave(self._progress.workload)
        if self._event is None:
            self.say(broken_off(None, 0, 0))
        else:
            done = len(self._event.done) + len(self._records)
            self.say(broken_off(self._event.path, done, len(self._event.cells)))

    def _leave(self, workload: Workload) -> None:
        own = [r for r in self._records if r.cell.workload == workload]
        if own:
            made, notes = summary.blocks(rows(own))
            about_cells = [Text(note, "dim") for note in notes if note.startswith("[")]
            self._console.print(*summary.tables(made), *about_cells, sep="\n")

    def _draw(self) -> RenderableType:
        if self._event is None or self._progress is None:
            return Text("")
        at = self._progress
        records = {r.cell.implementation: r for r in self._records if r.cell.workload == at.workload}
        lines = {row.implementation: line_of(row) for row in rows(records.values())}
        table = Table.grid(padding=(0, 2))
        for cell in self._event.cells:
            if cell.workload != at.workload:
                continue
            name = cell.implementation
            if name in lines:
                table.add_row(Text(lines[name], summary.STYLES[records[name].outcome]))
            elif name == at.implementation:
                table.add_row(Text(f"{name:22} {at.phase}", "bold cyan"))
            else:
                table.add_row(Text(f"{name:22}", "dim"))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=1.0, completed=at.done, width=24),
            Text(f"{at.done:4.0%}"),
            Text(f"{len(self._records)} of {len(self._event.cells) - len(self._event.done)} cells"),
            Text(self._left(at.done)),
        )
        building = " (building the model)" if at.implementation is None else ""
        title = Text(f"{at.workload.label()}: {at.phase}{building}", "bold")
        return Group(Text(), title, table, Text(), bar)

    def _left(self, done: float) -> str:
        """The time left, at the pace so far; it says nothing before there is a pace."""
        spent = time.monotonic() - self._since
        if done < 0.02 or spent < 3:
            return ""
        left = int(spent * (1 - done) / done)
        return f"about {left // 60} min {left % 60} s left" if left >= 60 else f"about {left} s left"
