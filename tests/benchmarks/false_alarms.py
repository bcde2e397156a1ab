"""How often ``dpbench ab`` cries wolf, and how often it finds what is there, on a simulated noisy machine.

``make false-alarms``: writes results/reference/false-alarms.md. COUNT=2000 comparisons of a base with itself, and a
quarter as many with a planted slowdown of 5 and of 10 per cent, shared among all kinds of noise.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dpbench.change import Verdict
from dpbench.slowdown import of_one_run
from tests.noisy_machine import Machine, compared

REPORT = Path("results/reference/false-alarms.md")
NOISES = [
    {"paired": paired, "slow_clock": slow, "step": step}
    for paired, slow, step in itertools.product((0.02, 0.03, 0.04), (0.0, 0.15), (0.005, 0.05, 0.4))
]
"""Noise of pairs, a clock of one or of two speeds, and steps of which a round has many, some, or few."""


def verdict(slowdown: float, seed: int) -> tuple[int, float, Verdict]:
    """Of one comparison, and on which of the noises."""
    kind = seed % len(NOISES)
    with tempfile.TemporaryDirectory() as directory:
        made = compared(Machine(seed=seed, **NOISES[kind]), slowdown, directory)
    return kind, slowdown, of_one_run(made.new.cell, made.base, made.new).verdict


def main(count: int) -> None:
    """Run all, and write the report."""
    asked = [(0.0, seed) for seed in range(count)]
    for slowdown in (0.05, 0.10):
        asked += [(slowdown, 10**6 + seed) for seed in range(count // 4)]
    found: Counter[tuple[int, float, Verdict]] = Counter()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for done, one in enumerate(pool.map(verdict, *zip(*asked, strict=True), chunksize=10), 1):
            found[one] += 1
            if done % 100 == 0:
                print(f"{done} of {len(asked)}", file=sys.stderr, flush=True)
    text = "\n".join(report(found, count))
    REPORT.write_text(text + "\n")
    print(text)


def report(found: Counter[tuple[int, float, Verdict]], count: int) -> list[str]:
    """The table, and the sums that the promise is about."""
    kinds: list[int | None] = [*range(len(NOISES)), None]
    lines = [
        "# False alarms and findings of `dpbench ab`",
        "",
        f"`make false-alarms`, {count} comparisons of a base with itself and {count // 4} with each planted slowdown,",
        "20 rounds each, on a simulated machine (tests/noisy_machine.py): every process has luck of its own, 5 % of",
        "the steps take 1.3 to 3 times as long, the machine drifts by 10 % over minutes, and its clock has one or two",
        "speeds; the process that starts last in a round is 3 % faster. Of a step of 400 ms a round has four, of one",
        "of 5 ms two hundred.",
        "",
        "| noise of pairs | clocks | step | A/A: slower or faster | A/A: same | 5 % found | 10 % found |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        own = {0.0: Counter[Verdict](), 0.05: Counter[Verdict](), 0.10: Counter[Verdict]()}
        for (k, slowdown, v), n in found.items():
            if kind in (None, k):
                own[slowdown][v] += n
        alarms = own[0.0][Verdict.SLOWER] + own[0.0][Verdict.FASTER]
        named = (
            ["**all**", "", ""]
            if kind is None
            else [
                f"{NOISES[kind]['paired']:.0%}",
                "two" if NOISES[kind]["slow_clock"] else "one",
                f"{1e3 * NOISES[kind]['step']:g} ms",
            ]
        )
        shares = [f"{own[s][Verdict.SLOWER]} of {own[s].total()}" for s in (0.05, 0.10)]
        cells = [*named, f"{alarms} of {own[0.0].total()}", f"{own[0.0][Verdict.SAME]}", *shares]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main(int(os.environ.get("COUNT", "2000")))
