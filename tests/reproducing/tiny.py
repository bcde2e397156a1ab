"""A paper with two small figures and its suite, and what is asked of them without processes."""

from __future__ import annotations

from contextlib import nullcontext

from dpbench.papers import chosen, read_all
from dpbench.reproducing import running
from dpbench.reproducing.begun import Asked

ENVIRONMENT = {"machine": {"id": "m1"}}

SUITE = """
rounds = 1
budget_s = 0.01

[axes]
implementation = ["bk", "opacus"]
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
left_out = "B=16 and opacus"
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


def unprocessed(monkeypatch, launcher):
    """Children are ``launcher``'s, and traces are taken in this process."""
    monkeypatch.setattr(running, "ForkServer", lambda: nullcontext(launcher))
    monkeypatch.setattr(running, "workers", lambda: nullcontext(None))
    monkeypatch.setattr("dpbench.environment.environment", lambda: ENVIRONMENT)


def asked(directory, *figures, **more):
    """What would be asked in the directory of the paper."""
    found = chosen(read_all([directory / "papers" / "mine.toml"]), figures)
    return Asked(figures=tuple(found), directory=directory / "out", **more)
