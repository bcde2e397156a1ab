"""Predicted against measured step times on this machine, calibrated. Run: ``make calibrated``.

It reads the newest results of the suite ``calibrated`` and keeps what it finds in
``results/reference/calibrated.md``.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from dpbench.cards import card
from dpbench.complexity.roofline import seconds
from dpbench.complexity.tracing import trace_of
from dpbench.environment import describe
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration
from dpbench.results import read
from dpbench.rows import rows

REFERENCE = Path("results/reference")


def main() -> None:
    here = card("here")
    path = sorted(Path("results").glob("calibrated-*.jsonl"))[-1]
    results = read(path)
    table = [["implementation", "workload", "measured", "predicted", "low", "high", "error", "arithmetic", "traffic"]]
    errors = {}
    for row in rows(results):
        if row.seconds is None:
            continue
        trace = trace_of(row.implementation, row.workload)
        found = seconds(trace, here, row.workload.precision)
        key = row.implementation, row.workload.label()
        errors[key] = found.expected / row.seconds - 1
        times = map(duration, (row.seconds, found.expected, found.low, found.high))
        shares = trace.total / here.peaks["fp32"] / row.seconds, trace.traffic / here.bandwidth / row.seconds
        table.append([*key, *times, f"{errors[key]:+.1%}", *(f"{share:.0%}" for share in shares)])
    private = {key: error for key, error in errors.items() if key[0] != "nonprivate"}
    worst = max(private, key=lambda key: abs(private[key]))
    said = [
        "# Predicted against measured step times",
        "",
        f"Made by `make calibrated`. {describe(dict(results.header.environment))}; {here.source}. Arithmetic "
        "and traffic: their share of the measured time, if each ran at the calibrated speed.",
        "",
        *(f"    {line}" for line in aligned(table, left=2)),
        "",
        f"{len(private)} workloads: median error {median(map(abs, private.values())):.1%} (asked 15 %), with "
        f"nonprivate {median(map(abs, errors.values())):.1%}; worst {private[worst]:+.1%}, {worst[0]} on {worst[1]}",
    ]
    print("\n".join(said))
    (REFERENCE / "calibrated.md").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
