"""Tables and methods for a paper, each a file to be taken in by ``\\input``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpbench.document.footnotes import Footnotes
from dpbench.document.latexescape import comment, escape
from dpbench.document.parts import Document, Entry, Grid, Kind

PAGE = 40
"""Lines of a table that fit on a page; a longer one is broken by longtable."""
METHODS = "methods.tex"


def latex(document: Document) -> dict[str, str]:
    """The text of each file by its name: one for each table, and one with the methods."""
    grids = [part for section in document.sections for part in section.parts if isinstance(part, Grid)]
    return {**{f"{grid.id}.tex": table(grid) for grid in grids}, METHODS: methods(document)}


def methods(document: Document) -> str:
    """The paragraphs, and the papers to cite."""
    papers = [rf"\item {escape(paper)}" for paper in document.citations]
    lines = [comment(document.title), comment(document.made), *_paragraphs(document.methods)]
    if papers:
        lines += [r"\begin{itemize}", *papers, r"\end{itemize}"]
    return "\n".join(lines) + "\n"


def table(grid: Grid) -> str:
    """A tabular with the rules of booktabs and its notes below; a longtable where a page cannot hold it."""
    notes, long = Footnotes(), len(grid.lines) > PAGE
    kind = "longtable" if long else "tabular"
    form = "".join("r" if column.numeric else "l" for column in grid.columns)
    head = _line([f"{c.title} ({c.unit})" if c.unit else c.title for c in grid.columns])
    body = [" & ".join(_entries(line, notes)) + r" \\" for line in grid.lines]
    said = [*(rf"$^{{{i}}}$ {escape(note)}" for i, note in notes), *map(escape, grid.notes)]
    lines = [
        comment(grid.caption),
        comment(rf"needs \usepackage{{booktabs{',longtable' if long else ''}}}"),
        rf"\begin{{{kind}}}{{{form}}}",
        r"\toprule",
        head,
        r"\midrule",
        *([r"\endhead"] if long else []),
        *body,
        r"\bottomrule",
        rf"\end{{{kind}}}",
        *([r"\par\smallskip", *(rf"{{\footnotesize {note}\par}}" for note in said)] if said else []),
    ]
    return "\n".join(lines) + "\n"


def _entries(line: Sequence[Entry], notes: Footnotes) -> Iterator[str]:
    for entry in line:
        text = escape(entry.text)
        mark = f"$^{{{notes.number(entry.note)}}}$" if entry.note else ""
        yield (rf"\textbf{{{text}}}" if entry.kind is Kind.BEST and text else text) + mark


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from (escape(text), "")
