"""A paper with two small figures, its suite, and what measuring and tracing would give of it."""

from __future__ import annotations

SUITE = """
rounds = 1
budget_s = 0.01

[axes]
implementation = "bk"
threads = 1

[[models]]
model = "synthetic:mlp(width=16,depth=2)"
batch = [8, 16]
"""

PAPER = """
id = "mine"
citation = "Somebody. Something. 2030"

[[figure]]
id = "one"
title = "First"
printed = "figure 1"
read = "bars"
[[figure.run]]
suite = "small"
quantities = ["throughput", "memory"]
[figure.run.here]
rounds = 1
budget_s = 0.01
axes = { batch = { "16" = 12 } }
left_out = "B=8 and opacus"
why = "slow"
[[figure.row]]
model = "synthetic:mlp"
B = 8
throughput = { nonprivate = 1000, bk = 800 }

[[figure]]
id = "two"
title = "Second"
[[figure.run]]
suite = "small"
select = "B=8"
quantities = ["memory"]
"""


def written(directory, paper=PAPER, suite=SUITE):
    """The paper and its suite, where a user has them."""
    for name, text in (("papers/mine.toml", paper), ("suites/small.toml", suite)):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory / "papers" / "mine.toml"
