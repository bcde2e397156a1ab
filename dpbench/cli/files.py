"""Which files a command reads, and which it may write."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import typer

from dpbench.errors import DpbenchError
from dpbench.frame import read_all
from dpbench.records import Cell, from_json
from dpbench.results import Header, Results, header_line, latest, parsed
from dpbench.selection import select

T = TypeVar("T", bound="Of")


def opened(files: Sequence[str] | None) -> list[Results]:
    """The files named (paths, directories or globs), or the last run; remarks go to stderr."""
    results = read_all(list(files) if files else latest(), lambda text: typer.echo(text, err=True))
    # It stays until the command ends, and is not to be searched for garbage whenever more is made of it.
    gc.freeze()
    return results


def opened_one(name: str) -> Results:
    """One results file; ``-`` reads it, or the records that ``dpbench run --json`` prints, from stdin."""
    if name != "-":
        found = opened([name])
        if len(found) != 1:
            raise DpbenchError(f"{name} matches {len(found)} files, expected one")
        return found[0]
    content = sys.stdin.buffer.read()
    first = content.partition(b"\n")[0]
    if not first.strip():
        raise DpbenchError("stdin is empty, expected records: dpbench run ... --json | dpbench compare BASE -")
    if not first.startswith(b'{"dpbench"'):
        record = from_json(first.decode(errors="replace"))
        header = Header(
            command=record.command, suite="-", environment=record.environment, cells=(), started=record.started
        )
        content = header_line(header).encode() + b"\n" + content
    results = parsed(Path("-"), content)
    if results.torn:
        typer.echo(results.torn, err=True)
    return results


class Of(Protocol):
    """What is said of one cell."""

    @property
    def cell(self) -> Cell:
        """Which one."""
        ...


def narrowed(said: Sequence[T], expression: str | None) -> list[T]:
    """What is said of the cells that match ``-k``.

    Figures are narrowed once they are compared: a baseline that is not asked for is still what others are held against.

    Raises:
        EmptySelection: none matches.
    """
    if expression is None:
        return list(said)
    chosen = set(select(list(dict.fromkeys(one.cell for one in said)), expression))
    return [one for one in said if one.cell in chosen]


def drawable(path: Path) -> None:
    """Raise DpbenchError before anything is done for a picture that could not be drawn."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise DpbenchError(f"cannot draw {path}, expected a name that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise DpbenchError(f"cannot draw {path}, there is no directory {path.parent}")
