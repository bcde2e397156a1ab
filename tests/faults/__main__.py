"""Each fault many times. Run: ``make faults`` (N=, SEED=); it keeps what it finds in ``results/reference/faults.md``.

``python -m tests.faults NAME...`` does those alone, and keeps nothing.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from tests.faults.all import FAULTS
from tests.faults.judged import Struck

REFERENCE = Path("results/reference")
HEAD = [
    "# Faults",
    "",
    "Made by `make faults`: each fault so many times, at random moments, in runs of six small cells on one machine.",
    "The end is that of the last process; where a run goes on after the fault, that of the whole run.",
    "",
    "| fault | times | cells lost | wrong figures | processes left | other surprises | longest until the end |",
    "|---|---|---|---|---|---|---|",
]


def many(name: str, fault: ModuleType, times: int, seed: int) -> tuple[str, bool]:
    """One row of the table, and whether all went well."""
    found: list[Struck] = []
    for i in range(min(times, getattr(fault, "PASSES", times))):
        with tempfile.TemporaryDirectory() as place:
            struck = fault.strike(Path(place), random.Random(f"{name} {seed + i}"))
        found.append(struck)
        for said in struck.odd:
            print(f"  {name} {seed + i}: {said}", flush=True)
    lost, wrong, left, odd = (
        sum(values) for values in zip(*((s.lost, s.wrong, s.left, len(s.odd)) for s in found), strict=True)
    )
    longest = max(s.seconds for s in found)
    row = f"| {fault.FAULT} | {sum(s.times for s in found)} | {lost} | {wrong} | {left} | {odd} | {longest:.1f} s |"
    print(row, flush=True)
    return row, not (lost or wrong or left or odd)


def main() -> int:
    times, seed = int(os.environ.get("N") or 20), int(os.environ.get("SEED") or 0)
    names = sys.argv[1:] or list(FAULTS)
    rows = [many(name, FAULTS[name], times, seed) for name in names]
    if not sys.argv[1:]:
        REFERENCE.mkdir(parents=True, exist_ok=True)
        (REFERENCE / "faults.md").write_text("\n".join([*HEAD, *(row for row, _ in rows)]) + "\n", encoding="utf-8")
    return 0 if all(well for _, well in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
