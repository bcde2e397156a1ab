"""A report as a document of LaTeX: it takes in the tables and the methods, shows the charts, cites the papers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpbench.document.latex import FIT, METHODS, REFERENCES, captioned, is_long
from dpbench.document.latexescape import breakable, comment, escape
from dpbench.document.parts import Chart, Document, Grid, Section, Source
from dpbench.reportpath import find

REPORT = "report.tex"


def typeset(document: Document, pictures: Mapping[str, str]) -> str:
    """The text of the document, to be made into a PDF where the files that it takes in lie.

    Args:
        document: the report.
        pictures: the file of each chart, by its id, from there; of one that has none its caption says so.
    """
    name = REPORT.removesuffix(".tex")
    steps = ["pdflatex", *(["bibtex"] if document.citations else []), "pdflatex", "pdflatex"]
    blocks = [
        comment(f"The PDF is made here by: {'; '.join(f'{step} {name}' for step in steps)}"),
        find("latex/preamble.tex").read_text(encoding="utf-8").strip(),
        FIT,
        rf"\title{{{escape(document.title)}}}",
        rf"\author{{\parbox{{.9\linewidth}}{{\centering {breakable(document.made)}}}}}",
        r"\date{}",
        "\\begin{document}\n\\maketitle",
        *_list(document.summary),
    ]
    for section in document.sections:
        blocks += _section(section, pictures)
    blocks += [r"\clearpage", r"\section*{Methods}", _input(METHODS), r"\section*{Sources}"]
    blocks += map(_source, document.sources)
    if document.citations:
        blocks.append(f"\\bibliographystyle{{unsrt}}\n\\bibliography{{{REFERENCES.removesuffix('.bib')}}}")
    return "\n\n".join([*blocks, r"\end{document}"]) + "\n"


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    # Floats of one section are all out before the next, and never more than LaTeX can hold.
    yield r"\clearpage"
    yield rf"\section*{{{escape(section.title)}}}"
    yield from map(escape, section.prose)
    for part in section.parts:
        if isinstance(part, Grid):
            yield _table(part)
        elif part.id in pictures:
            yield _figure(part, pictures[part.id])
        else:
            yield escape(f"{part.caption} (not drawn here: add pdf or png to --formats)")
    yield from map(breakable, section.remarks)


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


def _source(source: Source) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in source.versions.items())
    said = [source.file, source.title, source.started, source.command, source.machine, versions, *source.remarks]
    return rf"\textbf{{{source.id}}}: {breakable('; '.join(filter(None, said)))}"


def _input(name: str) -> str:
    return rf"\input{{{name}}}"


def _list(sentences: Iterable[str]) -> Iterator[str]:
    items = [rf"\item {escape(sentence)}" for sentence in sentences]
    if items:
        yield "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])
