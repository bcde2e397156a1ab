"""Results as a pandas DataFrame: one row for each cell, flat columns, each described in COLUMNS."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench.errors import DpbenchError
from dpbench.garbage import uncollected
from dpbench.records import Workload
from dpbench.results import Results, read
from dpbench.rows import COLUMNS, Row, rows

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["COLUMNS", "load", "read_all"]

Paths = str | Path | Iterable[str | Path]


@uncollected()
def load(paths: Paths = "results/*.jsonl", baseline: str = "nonprivate") -> DataFrame:
    """Read results files, given as a glob, a path, a directory, or several of them.

    Sizes are bytes, times seconds. The columns ``speed_relative`` and ``memory_relative`` compare
    with ``baseline`` on the same workload in the same file.

    Raises:
        DpbenchError: nothing there, or a file that cannot be read.
    """
    from pandas import DataFrame

    data = [row.flat() for results in read_all(paths) for row in rows(results, baseline)]
    return DataFrame(data, columns=list(COLUMNS)).astype(_types())


def _types() -> dict[str, str]:
    """pandas types that do not change with what happens to be in a file."""
    names = {"int": "Int64", "float": "float64", "bool": "boolean"}
    hints = {f.name: str(f.type) for f in fields(Workload)} | Row.__annotations__
    kinds = {n: h.removeprefix("Figure[").removesuffix("]").removesuffix(" | None") for n, h in hints.items()}
    return {column: names[kinds[column]] for column in COLUMNS if kinds.get(column) in names}


def read_all(paths: Paths, say: Callable[[str], None] = warnings.warn) -> list[Results]:
    """Every results file of ``paths``; ``say`` is told of a last line that is incomplete."""
    found: list[Results] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        pattern = str(Path(path) / "*.jsonl") if Path(path).is_dir() else str(path)
        files = [path] if Path(path).is_file() else sorted(glob(pattern))
        if not files:
            raise DpbenchError(f"{path} matches no file, expected results of dpbench such as results/*.jsonl")
        found += [read(file) for file in files]
    for results in found:
        if results.torn:
            say(results.torn)
    return found
