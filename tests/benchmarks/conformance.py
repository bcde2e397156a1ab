"""Who is right: the verdicts of the conformance kit as a table. Run: ``make conformance``.

It reads what ``dpbench verify --json`` wrote to ``results/conformance.jsonl`` (or the files that are
given), and keeps the verdicts in ``results/reference/conformance.jsonl`` and the table beside it.
Verdicts on implementations that were not run again stay there, with their dates.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
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
Row = dict[str, Any]


def main(files: list[str]) -> None:
    fresh = [condensed(row) for file in files for row in read(Path(file))]
    again = {row["implementation"] for row in fresh}
    rows = fresh + [row for row in read(REFERENCE / "conformance.jsonl") if row["implementation"] not in again]
    order = list(dict.fromkeys(row["implementation"] for row in rows))
    rows.sort(key=lambda row: (order.index(row["implementation"]), _place(row["check"])))
    text = "\n".join([*head(rows), *table(rows, order), "", *wrong(rows, order), *elsewhere(rows)]) + "\n"
    print(text)
    (REFERENCE / "conformance.md").write_text(text, encoding="utf-8")
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    (REFERENCE / "conformance.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def condensed(row: Row) -> Row:
    """What is kept of a verdict, the errors in other precisions as [its own, the loop's]: the case says the rest."""
    kept = {name: row[name] for name in KEPT if row[name] not in (None, "", [], {}, 0)}
    if "native" in kept:
        kept["native"] = {name: [_short(n["error"]), _short(n["loop"])] for name, n in kept["native"].items()}
    if "error" in kept:
        kept["error"] = _short(kept["error"])
    return kept


def head(rows: list[Row]) -> list[str]:
    refused = sum(bool(case.refused) for case in CASES.values())
    answered = len({row["check"] for row in rows}) - refused
    versions, dates = ({row[name] for row in rows} for name in ("torch", "date"))
    return [
        "# Who is right",
        "",
        f"Made by `make conformance` with torch {', '.join(sorted(versions))} on {', '.join(sorted(dates))}. "
        f"{answered} checks have an answer, the loop over the examples in float64, and {refused} have none, because "
        "examples are mixed or the model is changed: there a refusal is right, and so is who takes each on its own. "
        "`dpbench list cases` says why each is there, `dpbench verify --impl NAME` does it again. The "
        "libraries' own stability constants are in the loop, too. Everything is on the CPU.",
        "",
    ]


def table(rows: list[Row], order: list[str]) -> list[str]:
    lines = [["implementation", *map(str, Ruling), "of", "| accepts", "of"]]
    for name in order:
        own = [row for row in rows if row["implementation"] == name]
        answered = Counter(row["ruling"] for row in own if not _refused(row))
        mixed = [row for row in own if _refused(row)]
        accepted = sum(row["ruling"] == "wrong" for row in mixed)
        counts = [str(answered[ruling]) for ruling in Ruling]
        lines.append([own[0]["title"], *counts, str(answered.total()), f"| {accepted}", str(len(mixed))])
    return [f"    {line}" for line in aligned(lines)]


def wrong(rows: list[Row], order: list[str]) -> Iterable[str]:
    """By implementation, the largest errors first."""
    for name in order:
        own = [row for row in rows if row["implementation"] == name and row["ruling"] == "wrong" and not _refused(row)]
        if not own:
            continue
        own.sort(key=lambda row: -_number(row.get("error", 0.0)))
        told = [f"{row['check']} {_percent(row.get('error', 0.0))}" for row in own]
        yield f"**{own[0]['title']}** is wrong on {len(own)}: " + "; ".join(told) + "."
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


def _percent(value: float | str | None) -> str:
    number = _number(value)
    return "without bound" if number == float("inf") else f"{100 * number:.2g} %"


if __name__ == "__main__":
    main(sys.argv[1:] or ["results/conformance.jsonl"])
