"""Tables and methods for a paper, each a file to be taken in by ``\\input``, and what they cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dpbench.document.bibtex import bibtex
from dpbench.document.footnotes import Footnotes
from dpbench.document.latexescape import breakable, comment, escape
from dpbench.document.parts import Chart, Document, Entry, Grid, Kind

PAGE = 40
"""Lines of a table that fit on a page; a longer one is broken by longtable."""
METHODS, REFERENCES = "methods.tex", "references.bib"
FIT = r"\providecommand{\tofit}[1]{\sbox0{#1}\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi}"
"""What is wider than the line is scaled down; who wants it otherwise defines ``\\tofit`` before."""


def latex(document: Document) -> dict[str, str]:
    """The text of each file by its name: one for each table, one with the methods, and the papers that these cite."""
    grids = [part for section in document.sections for part in section.parts if isinstance(part, Grid)]
    cited = {REFERENCES: bibtex(document.citations)} if document.citations else {}
    return {**{f"{grid.id}.tex": table(grid) for grid in grids}, METHODS: methods(document), **cited}


def methods(document: Document) -> str:
    """The paragraphs, with works that stand in parentheses cited by their keys."""
    keys = {escape(work.short): work.key for work in document.citations}
    work = "|".join(map(re.escape, keys)) or "(?!)"
    group = re.compile(rf"\(((?:{work})(?:; (?:{work}))*)\)")
    paragraphs = [group.sub(lambda found: _cite(found[1], keys), escape(text)) for text in document.methods]
    return "\n".join([comment(document.title), comment(document.made), "\n\n".join(paragraphs)]) + "\n"


def _cite(works: str, keys: Mapping[str, str]) -> str:
    return rf"\cite{{{','.join(keys[work] for work in works.split('; '))}}}"


def table(grid: Grid) -> str:
    """A tabular with the rules of booktabs and its notes below; a longtable where it is too long for a page."""
    notes, long = Footnotes(), is_long(grid)
    form = "".join("r" if column.numeric else "l" for column in grid.columns)
    head = [_line([column.title for column in grid.columns])]
    if any(column.unit for column in grid.columns):
        head.append(_line([f"({column.unit})" if column.unit else "" for column in grid.columns]))
    body = [" & ".join(_entries(line, notes)) + r" \\" for line in grid.lines]
    said = [*(rf"$^{{{i}}}$ {breakable(note)}" for i, note in notes), *map(breakable, grid.notes)]
    inside = [r"\toprule", *head, r"\midrule", *body, r"\bottomrule"]
    lines = [
        comment(grid.caption),
        comment(rf"needs \usepackage{{booktabs,{'longtable}, in one column and with room' if long else 'graphicx}'}"),
        *(_broken(grid, form, inside) if long else _whole(form, inside)),
        *([r"\par\smallskip", *(rf"{{\raggedright\footnotesize {note}\par}}" for note in said)] if said else []),
    ]
    return "\n".join(lines) + "\n"


def is_long(grid: Grid) -> bool:
    """Whether a page cannot hold it, and so no float."""
    return len(grid.lines) > PAGE


def captioned(part: Grid | Chart) -> str:
    """The caption, and a label ``tab:`` or ``fig:`` to refer to."""
    kind = "fig" if isinstance(part, Chart) else "tab"
    return rf"\caption{{{escape(part.caption)}}}\label{{{kind}:{part.id}}}"


def _whole(form: str, inside: Sequence[str]) -> tuple[str, ...]:
    return (FIT, rf"\tofit{{\begin{{tabular}}{{{form}}}", *inside, r"\end{tabular}}")


def _broken(grid: Grid, form: str, inside: list[str]) -> tuple[str, ...]:
    """Has its caption within, since no float can hold it."""
    head = inside[: inside.index(r"\midrule") + 1]
    first = (captioned(grid) + r"\\", *head, r"\endfirsthead")
    return (rf"\begin{{longtable}}{{{form}}}", *first, *head, r"\endhead", *inside[len(head) :], r"\end{longtable}")


def _entries(line: Sequence[Entry], notes: Footnotes) -> Iterator[str]:
    for entry in line:
        text = escape(entry.text)
        mark = f"$^{{{notes.number(entry.note)}}}$" if entry.note else ""
        yield (rf"\textbf{{{text}}}" if entry.kind is Kind.BEST and text else text) + mark


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"
