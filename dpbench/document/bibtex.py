"""Papers as entries of BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

from dpbench.document.citations import Cited
from dpbench.document.latexescape import escape


def bibtex(papers: Iterable[Cited]) -> str:
    """One entry for each, which every style of bibliographies takes; titles keep their capitals."""
    return "\n".join(map(_entry, papers))


def _entry(paper: Cited) -> str:
    fields = {
        "author": " and ".join(map(escape, paper.authors)),
        "title": f"{{{escape(paper.title)}}}",
        "howpublished": escape(paper.venue),
        "year": str(paper.year),
        "eprint": paper.arxiv,
        "archiveprefix": "arXiv",
        # Styles that know of no eprint show this.
        "note": f"arXiv:{paper.arxiv}",
    }
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items() if text]
    return "\n".join([f"@misc{{{paper.key},", *lines, "}", ""])
