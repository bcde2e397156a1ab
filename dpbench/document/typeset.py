"""A report as a document of LaTeX: it takes in the tables and the methods, shows the charts, cites the papers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpbench.document.latex import FIT, METHODS, REFERENCES, captioned, is_long
from dpbench.document.latexescape import comment, escape
from dpbench.document.parts import Chart, Document, Grid, Section
from dpbench.reportpath import find

REPORT = "report.tex"


def typeset(document: Document, pictures: Mapping[str, str]) -> str:
    """The text of the document, to be made into a PDF where the files that it takes in lie.

    Args:
        document: the report.
        pictures: the file of each chart, by its id, from there; those that have none are left out.
    """
    blocks = [
        comment(f"pdflatex {REPORT}, bibtex {REPORT.removesuffix('.tex')}, and pdflatex {REPORT} twice make the PDF"),
        find("latex/preamble.tex").read_text(encoding="utf-8").strip(),
        FIT,
        rf"\title{{{escape(document.title)}}}",
        rf"\author{{{escape(document.made)}}}",
        r"\date{}",
        "\\begin{document}\n\\maketitle",
        *_list(document.summary),
    ]
    for section in document.sections:
        blocks += _section(section, pictures)
    blocks.append("\\clearpage\n\\section*{Methods}\n" + _input(METHODS))
    if document.citations:
        blocks.append(f"\\bibliographystyle{{plain}}\n\\bibliography{{{REFERENCES.removesuffix('.bib')}}}")
    return "\n\n".join([*blocks, r"\end{document}"]) + "\n"


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    # Floats of one section are all out before the next, and never more than LaTeX can hold.
    yield r"\clearpage"
    yield rf"\section*{{{escape(section.title)}}}"
    yield from map(escape, section.prose)
    for part in section.parts:
        if isinstance(part, Chart):
            if part.id in pictures:
                yield _figure(part, pictures[part.id])
        else:
            yield _table(part)
    yield from map(escape, section.remarks)


def _figure(chart: Chart, picture: str) -> str:
    lines = [
        r"\begin{figure}[!htbp]\centering",
        rf"\tofit{{\includegraphics{{{picture}}}}}",
        captioned(chart),
        r"\end{figure}",
    ]
    return "\n".join(lines)


def _table(grid: Grid) -> str:
    if is_long(grid):
        return "\n".join([r"{\tiny", _input(f"{grid.id}.tex"), "}"])
    lines = [
        r"\begin{table}[!htbp]\centering",
        captioned(grid),
        _input(f"{grid.id}.tex"),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _input(name: str) -> str:
    return rf"\input{{{name}}}"


def _list(sentences: Iterable[str]) -> Iterator[str]:
    items = [rf"\item {escape(sentence)}" for sentence in sentences]
    if items:
        yield "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])
