"""Which files a command reads, and which it may write."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import typer

from dpbench.errors import DpbenchError
from dpbench.frame import read_all
from dpbench.records import from_json
from dpbench.results import Header, Results, latest
from dpbench.selection import select


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
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        if not content.startswith(b'{"dpbench"'):
            first = content.partition(b"\n")[0]
            if not first.strip():
                raise DpbenchError("stdin is empty, expected records: dpbench run ... --json | dpbench compare BASE -")
            record = from_json(first.decode(errors="replace"))
            header = Header(
                command=record.command, suite="-", environment=record.environment, cells=(), started=record.started
            )
            file.write(json.dumps({"dpbench": record.schema, "kind": "header", **asdict(header)}).encode() + b"\n")
        file.write(content)
        file.flush()
        return replace(opened([file.name])[0], path=Path("-"))


def narrowed(results: Results, expression: str | None) -> Results:
    """The same with the cells alone that match; raises EmptySelection where none does."""
    if expression is None:
        return results
    cells = list(dict.fromkeys([*results.header.cells, *(r.cell for r in results.records)]))
    chosen = dict.fromkeys(select(cells, expression))
    kept = tuple(r for r in results.records if r.cell in chosen)
    return replace(results, header=replace(results.header, cells=tuple(chosen)), records=kept)


def drawable(path: Path) -> None:
    """Raise DpbenchError before anything is done for a picture that could not be drawn."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise DpbenchError(f"cannot draw {path}, expected a name that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise DpbenchError(f"cannot draw {path}, there is no directory {path.parent}")
