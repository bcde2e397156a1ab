"""A report on the disk: which files each format makes, whole or not at all, and nobody else's replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dpbench.document.latex import latex
from dpbench.document.markdown import markdown
from dpbench.document.parts import Chart, Document
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
            raise unknown("format", name, FORMATS, f"There are: {', '.join(FORMATS)}.")
    return names


def write(document: Document, directory: Path, chosen: Sequence[str]) -> list[Path]:
    """Write the report in these formats; what was written, in the order of :data:`FORMATS`.

    Raises:
        DpbenchError: the directory cannot be made or written to, or a file is in the way that no report wrote.
    """
    pictures = [name for name in PICTURES if name in chosen]
    charts = [part for section in document.sections for part in section.parts if isinstance(part, Chart)]
    ours = _ours(directory)
    _refuse_others(directory, _names(document, chosen, charts, pictures), ours)
    _make(directory)
    written: list[Path] = []
    try:
        if pictures and charts:
            from dpbench.document.pictures import write as draw

            _make(directory / CHARTS)
            written += draw(charts, directory / CHARTS, pictures)
        for name, text in _texts(document, chosen, _linked(charts, pictures)):
            written.append(_replace(directory / name, text))
    except OSError as error:
        raise DpbenchError(f"cannot write the report into {directory}: {error.strerror or error}") from None
    finally:
        # What was written before it failed is ours all the same.
        with suppress(DpbenchError, OSError):
            names = sorted({*ours, *(str(path.relative_to(directory)) for path in written)})
            if written:
                _replace(directory / WRITTEN, json.dumps(names, indent=1) + "\n")
    order = {PAGE: 0, TEXT: 1, TABLES: 2, CHARTS: 3}
    return sorted(written, key=lambda path: order[path.relative_to(directory).parts[0]])


def _linked(charts: Iterable[Chart], pictures: Sequence[str]) -> dict[str, str]:
    """The picture of each chart that Markdown shows."""
    suffix = next((name for name in ("svg", "png") if name in pictures), None)
    return {chart.id: f"{CHARTS}/{chart.id}.{suffix}" for chart in charts} if suffix else {}


def _texts(document: Document, chosen: Sequence[str], linked: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    if "html" in chosen:
        yield PAGE, _page()(document)
    if "md" in chosen:
        yield TEXT, markdown(document, linked)
    if "latex" in chosen:
        yield from ((f"{TABLES}/{name}", text) for name, text in latex(document).items())


def _page() -> Callable[[Document], str]:
    from dpbench.document.page import page

    return page


def _names(document: Document, chosen: Sequence[str], charts: Sequence[Chart], pictures: Sequence[str]) -> list[str]:
    """Of all files that will be written."""
    names = [name for name, of in ((PAGE, "html"), (TEXT, "md")) if of in chosen]
    if "latex" in chosen:
        names += [f"{TABLES}/{name}" for name in latex(document)]
    return [*names, *(f"{CHARTS}/{chart.id}.{suffix}" for chart in charts for suffix in pictures)]


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
            f"{directory / others[0]}{more} is in the way and was not written by dpbench report; name "
            "another directory with -o, or move it away"
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
