"""The formats of a table: text, Markdown, LaTeX (booktabs) and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable

from dpbench.reporting.columns import aligned
from dpbench.reporting.table import Table


def text(table: Table) -> str:
    """Aligned columns, numbers to the right."""
    head, *body = aligned([[*table.keys, *table.columns], *_body(table, " [{}]")], len(table.keys))
    rule = "-" * max(map(len, [head, *body]))
    notes = [f"[{i}] {note}" for i, note in enumerate(table.footnotes, start=1)]
    return "\n".join([table.caption, "", head, rule, *body, *_after(notes)]) + "\n"


def markdown(table: Table) -> str:
    """A pipe table, with a caption above and footnotes below."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"

    rule = ["---"] * len(table.keys) + ["---:"] * len(table.columns)
    body = [line(cells) for cells in _body(table, " [{}]")]
    notes = [f"{i}. {note}" for i, note in enumerate(table.footnotes, start=1)]
    head = line([*table.keys, *table.columns])
    return "\n".join([f"**{table.caption}**", "", head, line(rule), *body, *_after(notes)]) + "\n"


def latex(table: Table) -> str:
    """A tabular with booktabs' rules, to be put into a table environment; footnotes follow it."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    keys, width = len(table.keys), len(table.keys) + len(table.columns)
    body = [
        line([_escape(c) if i < keys or "$^{" not in c else c for i, c in enumerate(cells)])
        for cells in _body(table, "$^{{{}}}$")
    ]
    notes = [rf"$^{{{i}}}$ {_escape(note)}\par" for i, note in enumerate(table.footnotes, start=1)]
    return (
        "\n".join(
            [
                f"% {table.caption}",
                r"% \usepackage{booktabs}",
                rf"\begin{{tabular}}{{{'l' * keys}{'r' * len(table.columns)}}}",
                r"\toprule",
                line([_escape(c) for c in [*table.keys, *table.columns]]),
                r"\midrule",
                *body,
                r"\bottomrule",
                line([rf"\multicolumn{{{width}}}{{l}}{{\footnotesize {_escape(table.caption)}}}"]),
                r"\end{tabular}",
                *_after(notes),
            ]
        )
        + "\n"
    )


def comma_separated(table: Table) -> str:
    """CSV with full precision; the unit stands in the header of each column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    unit = f" [{table.unit}]" if table.unit else ""
    writer.writerow([*table.keys, *(c + unit for c in table.columns)])
    for names, cells in table.lines:
        writer.writerow([*names, *(c if isinstance(c, str) else repr(c) for c in cells)])
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": text,
    "md": markdown,
    "latex": latex,
    "csv": comma_separated,
}


def _body(table: Table, mark: str) -> list[list[str]]:
    body = []
    for i, (names, cells) in enumerate(table.lines):
        marked = [
            table.shown(cell) + (mark.format(table.marks[i, j]) if (i, j) in table.marks else "")
            for j, cell in enumerate(cells)
        ]
        body.append([*names, *marked])
    return body


def _after(notes: list[str]) -> list[str]:
    return ["", *notes] if notes else []


_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _escape(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)
