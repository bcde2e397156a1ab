"""The table of the BK paper on text, at full size: our ratios to non-private beside the published ones.

Theirs are of an A100 and ours of whatever card is here: they are shown side by side, and not judged. What is judged is
that every cell that ran on their card runs, and is right.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from typing import Any

from dpbench.papers import printed_in
from dpbench.records import Cell, Outcome, Record, Workload
from dpbench.rows import rows
from dpbench.suite import load
from dpbench.sweep import cells_of, sweep
from tests.benchmarks.gpu_check.check import Answer, Check, Say, answer, could_not
from tests.benchmarks.gpu_check.driver import DEVICE

FIGURES = ("gpt2-e2e", "roberta-glue")
LIMITS_S = {
    "transformers:gpt2": 90.0,
    "transformers:gpt2-medium": 120.0,
    "transformers:gpt2-large": 180.0,
    "transformers:roberta-large": 120.0,
}


def printed(model: str) -> dict[str, float | str]:
    """Examples/s by implementation, of the first row that the paper has of it."""
    rows = (row for figure in FIGURES for row in printed_in("bu2023", figure).row)
    return next(row.throughput for row in rows if row.model == model)


def part(model: str) -> str:
    """What it is called."""
    return f"{model} at the paper's B and T"


def table(model: str, say: Say) -> None:
    """One model's row."""
    suite = replace(load("paper-text").override({"device": DEVICE}), rounds=1, budget_s=1.0, timeout_s=60.0)
    cells = [cell for cell in cells_of(suite) if cell.workload.model == model]
    with tempfile.TemporaryDirectory() as directory:
        events = sweep(suite, cells, directory=directory)
        say(judged(model, cells, [event for event in events if isinstance(event, Record)]))


def judged(model: str, cells: list[Cell], records: list[Record]) -> Answer:
    """Every implementation's ratio, the published one in parentheses."""
    published = printed(model)
    expected = "all of them measured, but for those that ran out of memory there, too"
    told: dict[str, dict[str, Any]] = {}
    said, right = [], len(records) == len(cells)
    for row in rows(records):
        name, theirs = row.implementation, published[row.implementation]
        plain = published["nonprivate"]
        ratio = "oom" if isinstance(theirs, str) or isinstance(plain, str) else f"{theirs / plain:.2f}"
        base = plain if isinstance(plain, str) else f"{plain:g}"
        told[name] = {
            "outcome": str(row.outcome), "reason": row.reason, "examples_per_s": row.examples_per_s,
            "ratio": row.speed_relative, "peak": row.memory, "published": theirs, "published_ratio": ratio,
        }  # fmt: skip
        allowed = {Outcome.OK} | ({Outcome.OUT_OF_MEMORY} if theirs == "oom" else set())
        right = right and row.outcome in allowed
        mine = f"{row.examples_per_s:.0f}/s" if row.examples_per_s else f"{row.outcome} {row.reason}"
        mine += f" {row.speed_relative:.2f}" if row.speed_relative and name != "nonprivate" else ""
        said.append(f"{name} {mine} ({base if name == 'nonprivate' else ratio})")
    if not records:
        return could_not(part(model), expected, "no cell was finished")
    return answer(part(model), expected, ", ".join(said), right, label=label(cells[0].workload), cells=told)


def label(workload: Workload) -> str:
    """What was run."""
    return workload.label()


TABLES = tuple(
    Check(f"paper, {model.partition(':')[2]}", (part(model),), limit, partial(table, model))
    for model, limit in LIMITS_S.items()
)
