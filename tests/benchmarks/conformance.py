"""Who is right: the verdicts of the conformance kit as a table. Run: ``make conformance``.

It reads what ``dpbench verify --json`` wrote to ``results/conformance.jsonl`` (or the files that are
given), and keeps the verdicts in ``results/reference/conformance.jsonl`` and the table beside it.
Verdicts on implementations that were not run again stay there, with their dates.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dpbench.cases import CASES
from dpbench.conformance.verdict import Ruling
from dpbench.reporting.columns import aligned

REFERENCE = Path("results/reference")
KEPT = (
    "implementation", "title", "check", "ruling", "error", "worst", "message", "frozen", "asked", "figure", "native",
    "torch", "date",
)  # fmt: skip
COMMON = ("title", "torch", "date")
"""What all rows of one implementation share."""
LONGEST = 120
"""Characters of a message that are kept."""

Row = dict[str, Any]


def main(files: list[str]) -> None:
    fresh = [condensed(row) for file in files for row in read(Path(file))]
    again = {row["implementation"] for row in fresh}
    kept = read(REFERENCE / "conformance.jsonl")
    rows = fresh + [row for row in kept if row["implementation"] not in again]
    # Ours before libraries, each as they stood.
    order = sorted(dict.fromkeys(row["implementation"] for row in kept + fresh), key=lambda name: "/" in name)
    rows.sort(key=lambda row: (order.index(row["implementation"]), _place(row["check"])))
    text = "\n".join([*head(rows), *table(rows, order), "", *wrong(rows, order), *elsewhere(rows)]) + "\n"
    print(text)
    (REFERENCE / "conformance.md").write_text(text, encoding="utf-8")
    lines = [json.dumps(row, separators=(",", ":")) for row in once(rows)]
    (REFERENCE / "conformance.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> list[Row]:
    """Rows, with what :func:`once` left out."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    rows: list[Row] = []
    for line in text.splitlines():
        row = json.loads(line)
        same = rows and rows[-1]["implementation"] == row["implementation"]
        rows.append({**{name: rows[-1][name] for name in COMMON}, **row} if same else row)
    return rows


def once(rows: list[Row]) -> Iterable[Row]:
    """Rows without what is that of the row before, which is on the same implementation."""
    before = None
    for row in rows:
        left_out = COMMON if row["implementation"] == before else ()
        yield {name: value for name, value in row.items() if name not in left_out}
        before = row["implementation"]


def condensed(row: Row) -> Row:
    """What is kept of a verdict, the errors in float32 as [its own, the loop's]: the case says the rest."""
    kept = {name: row[name] for name in KEPT if row[name] not in (None, "", [], {}, 0)}
    if "native" in kept:
        kept["native"] = {"fp32": [_short(kept["native"]["fp32"][key]) for key in ("error", "loop")]}
    if kept["ruling"] == "right":
        kept.pop("worst", None)
        kept.pop("asked", None)
    if "message" in kept:
        kept["message"] = kept["message"][:LONGEST]
    if "error" in kept:
        kept["error"] = _short(kept["error"])
    return kept


def head(rows: list[Row]) -> list[str]:
    refused = sum(bool(case.refused) for case in CASES.values())
    versions, dates = ({row[name] for row in rows} for name in ("torch", "date"))
    return [
        "# Who is right",
        "",
        f"Made by `make conformance`, torch {', '.join(sorted(versions))}, {', '.join(sorted(dates))}, on a CPU, "
        "in float64, against the loop over the examples (with the library's own stability constant). "
        "`dpbench list cases` says why each case is there; README.md here, where rows of what is on no index are from.",
        "",
        "- *refuses*: says in words that it cannot; *freezes*: parameters get no gradient, the others are right.",
        "- *beyond R*: of the wrong ones, those in which one example moves the sum by more than R in the case's batch, "
        "so that noise scaled to R does not cover it. The others give another vector within the bound.",
        f"- In {refused} further cases examples are mixed, or the forward writes into the model, so that a refusal is "
        "right; *each alone*: takes each example on its own all the same, which is private, and another objective "
        "than the batch's; *accepts*: gives a gradient that belongs to no example.",
        "- Of libraries, checks that their adapters answer are left out: empty batches, units, other clipping styles, "
        "and the private step, which is dpbench's.",
        "",
    ]


ADAPTERS = (
    "step/*", "batch/empty*", "batch/*unit*", "threshold/per-layer", "threshold/group*", "normalization/batch-norm",
    "normalization/instance-norm-tracking", "embedding/max-norm",
)  # fmt: skip


def own(rows: list[Row], name: str) -> list[Row]:
    """The verdicts on one implementation that are its own."""
    library = "/" in name
    found = [row for row in rows if row["implementation"] == name]
    return [row for row in found if not (library and any(fnmatchcase(row["check"], p) for p in ADAPTERS))]


def table(rows: list[Row], order: list[str]) -> list[str]:
    lines = [["implementation", *map(str, Ruling), "of", "beyond R", "| mixing: refuses", "each alone", "accepts"]]
    for name in order:
        mine = own(rows, name)
        answered = [row for row in mine if not _refused(row)]
        count = Counter(row["ruling"] for row in answered)
        mixed = Counter(_of_mixing(row) for row in mine if _refused(row))
        counts = [str(count[ruling]) for ruling in Ruling]
        beyond = sum(_moves(row) > 1 + 1e-6 for row in answered if row["ruling"] == "wrong")
        ends = [f"| {mixed['refuses']}", str(mixed["each alone"]), str(mixed["accepts"])]
        lines.append([mine[0]["title"], *counts, str(len(answered)), str(beyond), *ends])
    return [f"    {line}" for line in aligned(lines)]


def _of_mixing(row: Row) -> str:
    if row["ruling"] == "right":
        return "each alone" if row.get("message", "").startswith("takes each") else "refuses"
    return "accepts" if row["ruling"] == "wrong" else "refuses"


def _moves(row: Row) -> float:
    found = re.search(r"moves the sum by ([\d.]+) R", row.get("figure", ""))
    return float(found[1]) if found else 0.0


def wrong(rows: list[Row], order: list[str]) -> Iterable[str]:
    """By implementation, the largest errors first."""
    for name in order:
        found = [row for row in own(rows, name) if row["ruling"] == "wrong" and not _refused(row)]
        if not found:
            continue
        found.sort(key=lambda row: -_number(row.get("error", 0.0)))
        told = []
        for row in found:
            moves = _moves(row)
            told.append(f"{row['check']} {_percent(row)}" + (f" ({moves:.2f} R)" if moves > 1 + 1e-6 else ""))
        yield f"**{found[0]['title']}** is wrong on {len(found)}: " + "; ".join(told) + "."
        yield ""


def elsewhere(rows: list[Row]) -> Iterable[str]:
    """Where an implementation that is right in float64 loses most in float32, beside the loop."""
    lost: dict[str, tuple[float, str]] = {}
    for row in rows:
        error, loop = row.get("native", {}).get("fp32", (None, None))
        if row["ruling"] in ("right", "freezes") and error is not None:
            times = _number(error) / max(_number(loop), 2.0**-23)
            if times < float("inf"):
                lost[row["title"]] = max(lost.get(row["title"], (0.0, "")), (times, row["check"]))
    lines = [["", "times the loop's error", "on"]]
    lines += [[title, f"{times:.1f}", check] for title, (times, check) in lost.items()]
    yield "Largest error in float32 of what is right in float64:"
    yield ""
    yield from (f"    {line}" for line in aligned(lines, text_last=True))


def _place(check: str) -> tuple[int, str]:
    names = list(CASES)
    return (names.index(check), check) if check in names else (len(names), check)


def _refused(row: Row) -> bool:
    return row["check"] in CASES and bool(CASES[row["check"]].refused)


def _number(value: float | str | None) -> float:
    found = float("inf") if value is None else float(value)
    return found if found == found else float("inf")


def _short(value: float | str | None) -> float | str | None:
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _percent(row: Row) -> str:
    number = _number(row.get("error", 0.0))
    return row["worst"] if number == float("inf") else f"{100 * number:.2g} %"


if __name__ == "__main__":
    main(sys.argv[1:] or ["results/conformance.jsonl"])
