"""A report on the disk: which files each format makes, whole or not at all, and nobody else's replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from dpbench.document.latex import latex
from dpbench.document.markdown import markdown
from dpbench.document.parts import Chart, Document
from dpbench.document.pictures import write as draw
from dpbench.document.typeset import REPORT, typeset
from dpbench.errors import DpbenchError, unknown

PICTURES = ("svg", "png", "pdf")
FORMATS = ("html", "md", "latex", *PICTURES)
PAGE, TEXT, TABLES, CHARTS = "index.html", "report.md", "latex", "charts"
WRITTEN = ".dpbench-report.json"
"""In the directory of a report: the files that it consists of, which the next one may replace."""


def formats(text: str) -> list[str]:
    """``html,md`` as a list.

    Raises:
        DpbenchError: none, or one that there is not.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise DpbenchError(f"--formats is empty, expected some of {', '.join(FORMATS)}")
    for name in names:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
    return names


def write(document: Document, directory: Path, chosen: Sequence[str]) -> list[Path]:
    """Write the report in these formats; what was written, pages and texts first.

    Raises:
        DpbenchError: the directory cannot be made or written to, or a file is in the way that no report wrote.
    """
    pictures = [name for name in PICTURES if name in chosen]
    charts = [part for section in document.sections for part in section.parts if isinstance(part, Chart)]
    texts = dict(_texts(document, chosen, charts))
    ours = _ours(directory)
    names = [*texts, *(f"{CHARTS}/{chart.id}.{suffix}" for chart in charts for suffix in pictures)]
    _refuse_others(directory, names, ours)
    _make(directory)
    try:
        # Before the others: what is left of a report that could not be finished is known to be one.
        _replace(directory / WRITTEN, json.dumps(sorted({*ours, *names}), indent=1) + "\n")
        written = [_replace(directory / name, text()) for name, text in texts.items()]
        return [*written, *(draw(charts, directory / CHARTS, pictures) if pictures and charts else [])]
    except OSError as error:
        raise DpbenchError(f"cannot write the report into {directory}: {error.strerror or error}") from None


def _linked(charts: Iterable[Chart], chosen: Sequence[str], shown: Sequence[str], root: str = "") -> dict[str, str]:
    """The picture of each chart in the first of the formats that a text can show."""
    suffix = next((name for name in shown if name in chosen), None)
    return {chart.id: f"{root}{CHARTS}/{chart.id}.{suffix}" for chart in charts} if suffix else {}


def _texts(
    document: Document, chosen: Sequence[str], charts: Sequence[Chart]
) -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of each file and what makes its text: whether it may be written is seen before anything is drawn."""
    if "html" in chosen:
        from dpbench.document.page import page

        yield PAGE, partial(page, document)
    if "md" in chosen:
        yield TEXT, partial(markdown, document, _linked(charts, chosen, ("svg", "png")))
    if "latex" in chosen:
        pictures = _linked(charts, chosen, ("pdf", "png"), "../")
        yield f"{TABLES}/{REPORT}", partial(typeset, document, pictures)
        yield from ((f"{TABLES}/{name}", partial(str, text)) for name, text in latex(document).items())


def _ours(directory: Path) -> set[str]:
    try:
        names = json.loads((directory / WRITTEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _refuse_others(directory: Path, names: Sequence[str], ours: set[str]) -> None:
    others = [name for name in names if name not in ours and (directory / name).exists()]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise DpbenchError(
            f"{directory / others[0]}{more} is in the way, and {WRITTEN} there does not say that dpbench report "
            "wrote it; name another directory with -o, or move it away"
        )


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DpbenchError(f"cannot make the directory {directory}: {error.strerror}; name another with -o") from None


def _replace(path: Path, text: str) -> Path:
    """Write a file beside it, then put that in its place."""
    _make(path.parent)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return path
