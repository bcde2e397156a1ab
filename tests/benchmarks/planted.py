"""``dpbench ab`` on this machine: a base beside itself, and beside one that is a tenth slower, many times.

``make planted``: writes results/reference/planted.md. AA=20 comparisons of ``bk`` with itself, PLANTED=10 with
tests/benchmarks/ten_percent_slower.py, the two kinds in turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

REPORT = Path("results/reference/planted.md")
SLOWER = "tests/benchmarks/ten_percent_slower.py"
MODEL = ["--model", "synthetic:mlp(width=512,depth=4)", "--batch", "64", "--threads", "1"]


def once(new: str) -> tuple[dict[str, object], float]:
    """The change in time of one comparison, and how long it took."""
    asked = ["--base", "bk", "--new", new, *MODEL, "--measure", "seconds", "--budget", "0.3", "--json"]
    command = ["dpbench", "ab", *asked]
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} exits {done.returncode}")
    return next(c for c in json.loads(done.stdout) if c["quantity"] == "seconds"), time.monotonic() - start


def main(same: int, planted: int) -> None:
    """All comparisons, each shown as it comes."""
    asked = sorted([(i / same, "bk") for i in range(same)] + [(i / planted, SLOWER) for i in range(planted)])
    lines = []
    found: dict[str, list[str]] = {"bk": [], SLOWER: []}
    seconds = []
    for _, new in asked:
        change, took = once(new)
        seconds.append(took)
        found[new].append(str(change["verdict"]))
        low, high = change["interval"]
        what = "itself" if new == "bk" else "10 % slower"
        reason = f" ({change['reason']})" if change["reason"] else ""
        figures = f"{change['ratio']:.3f} | {low:.3f} - {high:.3f} | {change['control']:.3f}"
        lines.append(f"| {what} | {change['verdict']}{reason} | {figures} |")
        print(lines[-1], flush=True)
    alarms = sum(v in ("slower", "faster") for v in found["bk"])
    text = [
        "# `dpbench ab` on one machine",
        "",
        f"`make planted`: `bk` beside itself {same} times, false alarms {alarms}; beside an implementation that idles "
        f"for a tenth of every step {planted} times, found {found[SLOWER].count('slower')}. 20 rounds of 0.3 s, "
        f"`{MODEL[1]}` at B=64, one thread; {sum(seconds) / len(seconds):.0f} s for each. The machine was shared: load "
        f"{os.getloadavg()[2]:.1f} over the last quarter of an hour, {os.cpu_count()} cores.",
        "",
        "| new | verdict | ratio | 95 % interval | control |",
        "|---|---|---|---|---|",
        *lines,
    ]
    REPORT.write_text("\n".join(text) + "\n")
    print(text[2])


if __name__ == "__main__":
    main(int(os.environ.get("AA", "20")), int(os.environ.get("PLANTED", "10")))
