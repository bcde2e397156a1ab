"""Writing results files.

A record is on the disk before the next cell starts, a file is never written over, and only one run
writes to a file at a time. What was torn off by a crash is at most the last line.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.records import Cell, Metric, Record, to_json
from dpbench.results import DIRECTORY, Header, Results, header_line, latest, read
from dpbench.stats import median
from dpbench.timed import SECONDS

__all__ = ["DIRECTORY", "Header", "Results", "Writer", "create", "latest", "open_for_resume", "read"]


@dataclass(slots=True)
class Writer:
    """An open and locked results file. Use it in ``with``; :meth:`append` each record as it is finished."""

    path: Path
    header: Header
    descriptor: int
    done: dict[Cell, Record] = field(default_factory=dict)
    go_on: str = ""
    """What to do where writing is broken off; empty: what goes on with this file alone."""

    def append(self, record: Record) -> None:
        """Write one record through to the disk; an incomplete line is taken back if that fails."""
        before = os.fstat(self.descriptor).st_size
        try:
            _write_line(self.descriptor, to_json(record, self.header.environment))
        except OSError as error:
            os.ftruncate(self.descriptor, before)
            raise DpbenchError(
                f"could not write to {self.path}: {error.strerror}. {len(self.done)} of "
                f"{len(self.header.cells)} cells are safe in it; make room and {self._how_to_go_on()}"
            ) from error
        self.done[record.cell] = record

    def _how_to_go_on(self) -> str:
        if self.header.run:
            return f"repeat: {self.header.command}"
        return self.go_on or f"go on with: dpbench run --resume {self.path}"

    def close(self) -> None:
        """Let go of the file and of the lock."""
        os.close(self.descriptor)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def create(
    suite: str,
    cells: Sequence[Cell],
    environment: Mapping[str, Any],
    command: str,
    directory: Path | str = DIRECTORY,
    started: datetime | None = None,
    run: str = "",
    go_on: str = "",
) -> Writer:
    """A new file ``directory/<suite>-<UTC time>[-n].jsonl``, locked, with its header written.

    ``run`` is the same for files that are sides of one run; ``go_on``: see :class:`Writer`.
    """
    started = started or datetime.now(UTC)
    stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', suite).strip('-.') or 'run'}-{started:%Y%m%dT%H%M%SZ}"
    header = Header(
        command=command,
        suite=suite,
        environment=dict(environment),
        cells=tuple(cells),
        started=started.isoformat(timespec="seconds"),
        run=run,
    )
    line = header_line(header)
    path, descriptor = _open_new(Path(directory), stem)
    try:
        _lock(descriptor, path)
        _write_line(descriptor, line)
    except OSError as error:
        os.close(descriptor)
        path.unlink()
        then = f"make room and {go_on}" if go_on else "make room first"
        raise DpbenchError(f"could not write to {path}: {error.strerror}; {then}") from error
    return Writer(path, header, descriptor, go_on=go_on)


def open_for_resume(
    path: Path | str,
    cells: Sequence[Cell],
    environment: Mapping[str, Any],
    sources: Mapping[str, str],
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    go_on: str = "",
) -> Writer:
    """Open a file to add the cells that are missing from it; ``done`` of the result holds the others.

    ``sources`` maps the name of an implementation to the hash of its source as it is now. An
    incomplete last line is cut off, after ``say`` was told.

    Raises:
        DpbenchError: another run holds the file, or it was made on another machine, from other
            source or for other cells: figures that may not be compared do not go into one file.
    """
    path = Path(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    except OSError as error:
        raise DpbenchError(f"cannot resume {path}: {error.strerror}") from None
    try:
        _lock(descriptor, path)
        results = read(path)
        _refuse_side(results)
        _refuse_other_machine(results, environment)
        _refuse_other_cells(results, cells)
        _refuse_other_source(results, sources)
        if results.torn:
            say(f"{results.torn}; cutting it off, its cell is run again")
            os.ftruncate(descriptor, results.whole_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return Writer(path, results.header, descriptor, {r.cell: r for r in results.records}, go_on)


def accept(results: Results, path: Path | str) -> Path:
    """Write ``results`` to ``path`` as a base to compare with, small enough to be committed: a figure for each round.

    The file is replaced in one step, so that one always is whole.

    Raises:
        DpbenchError: cells are missing from the results, or failed, so that they are no base; or it cannot be written.
    """
    given, path = Path(path), Path(path).resolve()
    if results.torn:
        raise DpbenchError(f"{results.torn}; that is no base")
    if results.missing:
        raise DpbenchError(
            f"{results.path} lacks {len(results.missing)} of {len(results.header.cells)} cells "
            f"({_shown(results.missing)}), so it is no base; go on with: dpbench run --resume {results.path}"
        )
    if failed := [r.cell for r in results.records if r.outcome.is_failure]:
        raise DpbenchError(
            f"{len(failed)} cells of {results.path} failed, were wrong or timed out ({_shown(failed)}), so it is no "
            "base; mend them, or leave them out of the suite"
        )
    header = replace(results.header, cells=tuple(r.cell for r in results.records), run="")
    draft = path.with_name(f".{path.name}.new")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(header_line(header) + "\n")
            file.writelines(to_json(_in_short(r), header.environment) + "\n" for r in results.records)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DpbenchError(f"could not write {path}: {error.strerror}; it is as it was") from error
    return given


def _in_short(record: Record) -> Record:
    """Round medians for samples (a lost round stays one), without what the header says or its own run alone uses.

    What is counted is the same on every machine, so that the roofline of this one has no place in it.
    """
    metrics = {
        name: Metric(m.unit, tuple((median(r),) if r else () for r in m.samples))
        for name, m in record.metrics.items()
        if name == SECONDS or not name.startswith(SECONDS)
    }
    traced = record.traced and replace(record.traced, roofline=None)
    return replace(record, metrics=metrics, traced=traced, rounds=(), command="", started="")


def _open_new(directory: Path, stem: str) -> tuple[Path, int]:
    """The first name that is free. O_EXCL, so that two runs started in one second do not meet."""
    number = 1
    while True:
        path = directory / (f"{stem}.jsonl" if number == 1 else f"{stem}-{number}.jsonl")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            return path, os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            if not directory.is_dir():
                raise DpbenchError(f"{directory} is a file, expected a directory for results") from None
            number += 1
        except OSError as error:
            raise DpbenchError(f"could not create {path}: {error.strerror}") from error


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DpbenchError(
            f"another run holds {path} and is writing to it; wait until it ends, or start a new run without --resume"
        ) from None
    except OSError as error:
        raise DpbenchError(
            f"cannot lock {path}: {error.strerror}; expected a file system with locks, choose another directory"
        ) from error


def _write_line(descriptor: int, line: str) -> None:
    rest = memoryview(line.encode() + b"\n")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _machine(environment: Mapping[str, Any]) -> object:
    machine = environment.get("machine")
    return machine.get("id") if isinstance(machine, Mapping) else machine


def _refuse_side(results: Results) -> None:
    if results.header.run:
        raise DpbenchError(
            f"{results.path} is one side of a comparison, whose times were taken in turns with the other's; it cannot "
            f"be gone on with alone. Repeat: {results.header.command}"
        )


def _refuse_other_machine(results: Results, environment: Mapping[str, Any]) -> None:
    was, now = _machine(results.header.environment), _machine(environment)
    if was != now:
        raise DpbenchError(
            f"{results.path} was made on another machine ({was}; this is {now}), and speeds of two "
            "machines do not go into one file; start a new run without --resume"
        )


def _refuse_other_cells(results: Results, cells: Sequence[Cell]) -> None:
    was, now = set(results.header.cells), set(cells)
    if was == now:
        return
    parts = [
        f"{len(some)} cells are only in {where}: {_shown(some)}"
        for where, some in (
            ("the file", [c for c in results.header.cells if c not in now]),
            ("this run", [c for c in cells if c not in was]),
        )
        if some
    ]
    raise DpbenchError(
        f"{results.path} is a run of other cells. {'. '.join(parts)}. Repeat its own command with --resume "
        f"({results.header.command}), or start a new run without it"
    )


def _refuse_other_source(results: Results, sources: Mapping[str, str]) -> None:
    changed = sorted(
        {r.cell.implementation for r in results.records if sources.get(r.cell.implementation, r.source) != r.source}
    )
    if changed:
        raise DpbenchError(
            f"the source of {', '.join(changed)} has changed since {results.path} was begun, and "
            "figures of two versions do not go into one file; start a new run without --resume, or "
            "restore the source"
        )


def _shown(cells: Sequence[Cell]) -> str:
    names = [f"{c.implementation} on {c.workload.label()}" for c in cells[:4]]
    return ", ".join(names) + (f", and {len(cells) - 4} more" if len(cells) > 4 else "")
