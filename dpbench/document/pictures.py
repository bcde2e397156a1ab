"""Charts as files: SVG, PNG and PDF, on white, the same bytes for the same chart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpbench.document.parts import Chart
from dpbench.errors import unknown
from dpbench.reporting.style import style

OPTIONS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 200},
    "pdf": {"metadata": {"CreationDate": None}},
}
"""What leaves the date out of each format."""


def write(charts: Sequence[Chart], directory: Path, suffixes: Sequence[str] = tuple(OPTIONS)) -> list[Path]:
    """Write every chart in every format as ``directory/<id>.<suffix>``, and say which files were written.

    A file is there as a whole or not at all; one of that name from before is replaced, others are left alone.

    Raises:
        DpbenchError: an unknown format.
        OSError: the disk is full, or the directory cannot be written to.
    """
    for suffix in suffixes:
        if suffix not in OPTIONS:
            raise unknown("format of charts", suffix, OPTIONS)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        for suffix in suffixes:
            path = directory / f"{chart.id}.{suffix}"
            _write(chart, path, suffix)
            written.append(path)
    return written


def _write(chart: Chart, path: Path, suffix: str) -> None:
    # Drawn anew for each file: to write a figure moves its layout a little, which the next file would have.
    figure = chart.draw()
    # Another report may be writing there.
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with style():
            figure.savefig(half, format=suffix, facecolor="white", **OPTIONS[suffix])
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
