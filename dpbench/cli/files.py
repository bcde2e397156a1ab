"""Which results files a command is about."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import typer

from dpbench.frame import read_all
from dpbench.results import Results, latest


def opened(files: Sequence[str] | None) -> list[Results]:
    """The files named (paths, directories or globs), or the last run; remarks go to stderr."""
    results = read_all(list(files) if files else latest(), lambda text: typer.echo(text, err=True))
    # It stays until the command ends, and is not to be searched for garbage whenever more is made of it.
    gc.freeze()
    return results
