"""What GitHub Actions shows of a gate: a summary of the job, and annotations of what does not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpbench.change import Change
from dpbench.gate import Ruling
from dpbench.reporting import changes as reporting

MOST = 10
"""Annotations: GitHub shows no more of one kind in a step."""


def summary(ruling: Ruling, changes: Sequence[Change], title: str) -> str:
    """Markdown: the verdict, what does not pass, and a line for each quantity."""
    passed = "passes" if ruling.exit_code == 0 else "does not pass"
    text = [f"## dpbench gate: {passed}", "", title, ""]
    for heading, found in sections(ruling):
        text += [
            f"**{heading}**",
            "",
            "| | 95 % interval | of | cell | base → new | why |",
            "|---|---|---|---|---|---|",
        ]
        text += [f"| {' | '.join(map(_escaped, _cells(change, why)))} |" for change, why in found] + [""]
    return "\n".join([*text, *(f"- {line}" for line in reporting.summary(changes)), ""])


def commands(ruling: Ruling, files: Mapping[str, str]) -> list[str]:
    """Workflow commands, at most ten; ``files``: the source of implementations, which they are shown at."""
    found = [("error", *one) for one in (*ruling.tripped, *ruling.failed, *ruling.unknown)]
    found += [("warning", *one) for one in ruling.warned]
    lines = []
    for level, change, why in found[:MOST]:
        file = files.get(change.cell.implementation)
        place = f"file={_property(file)},line=1," if file else ""
        text = f"{reporting.sentence(change)}{': ' + why if why else ''}"
        lines.append(f"::{level} {place}title=dpbench gate::{_data(text)}")
    return lines


def append(path: str, text: str) -> None:
    """Add to the file that GitHub names in GITHUB_STEP_SUMMARY."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def sections(ruling: Ruling) -> list[tuple[str, list[tuple[Change, str]]]]:
    """What there is, under headings."""
    parts = [
        ("does not pass", ruling.tripped),
        ("broke", ruling.failed),
        ("cannot be told", ruling.unknown),
        ("passes, with a warning", ruling.warned),
    ]
    return [(heading, found) for heading, found in parts if found]


def _cells(change: Change, why: str) -> tuple[str, ...]:
    shown = reporting.cells(change)
    return shown[0], shown[1], shown[2], f"{shown[3]} on {shown[4]}", shown[5], why


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
