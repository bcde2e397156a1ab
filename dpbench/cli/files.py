"""Which files a command reads, and which it may write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dpbench.errors import DpbenchError
from dpbench.frame import read_all
from dpbench.results import Results, latest


def opened(files: Sequence[str] | None) -> list[Results]:
    """The files named (paths, directories or globs), or the last run; remarks go to stderr."""
    return read_all(list(files) if files else latest(), lambda text: typer.echo(text, err=True))


def drawable(path: Path) -> None:
    """Raise DpbenchError before anything is done for a picture that could not be drawn."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise DpbenchError(f"cannot draw {path}, expected a name that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise DpbenchError(f"cannot draw {path}, there is no directory {path.parent}")
