"""Works as entries of BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

from dpbench.document.latexescape import escape
from dpbench.document.works import PLACE, Work


def bibtex(works: Iterable[Work]) -> str:
    """One entry for each; titles keep their capitals."""
    return "\n".join(map(_entry, works))


def _entry(work: Work) -> str:
    fields = {
        "author": " and ".join(map(_text, work.authors)),
        "title": f"{{{_text(work.title)}}}",
        PLACE[work.kind]: _text(work.place if work.kind != "misc" else f"{work.place} arXiv:{work.arxiv}"),
        "year": str(work.year),
        **({"eprint": work.arxiv, "archiveprefix": "arXiv"} if work.arxiv and work.kind != "misc" else {}),
    }
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items()]
    return "\n".join([f"@{work.kind}{{{work.key},", *lines, "}", ""])


def _text(text: str) -> str:
    """What BibTeX takes for letters, hyphens of names among them, stays; an accent stands in braces, as it expects."""
    return "".join(c if (c.isalnum() and c.isascii()) or c in " -.,:()" else f"{{{escape(c)}}}" for c in text)
