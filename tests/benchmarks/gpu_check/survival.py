"""A real lack of memory in a run, and the cell after it."""

from __future__ import annotations

import tempfile

import torch

from dpbench.records import Outcome, Record
from dpbench.suite import from_options
from dpbench.sweep import cells_of, sweep
from tests.benchmarks.gpu_check.check import Check, Say, answer
from tests.benchmarks.gpu_check.driver import DEVICE

MODEL, VOCABULARY, T, FITS = "transformers:gpt2(n_embd=192,n_head=3)", 50257, 128, 8
TOO_LARGE, AFTER = "a batch that cannot fit", "the cell after it"


def survival(say: Say) -> None:
    """The logits alone are larger than the card."""
    total = int(torch.cuda.get_device_properties(DEVICE).total_memory)
    batch = total // (4 * T * VOCABULARY) + 1
    axes = {"model": MODEL, "layers": 1, "seq_len": T, "batch": [batch, FITS], "device": DEVICE}
    suite = from_options({**axes, "implementation": ["nonprivate", "bk"]}, rounds=1, budget_s=0.2, timeout_s=60.0)
    with tempfile.TemporaryDirectory() as directory:
        events = list(sweep(suite, cells_of(suite), directory=directory))
    records = [event for event in events if isinstance(event, Record)]
    for part, size, wanted in ((TOO_LARGE, batch, Outcome.OUT_OF_MEMORY), (AFTER, FITS, Outcome.OK)):
        mine = [r for r in records if r.cell.workload.batch == size]
        told = {r.cell.implementation: f"{r.outcome} {r.reason}".strip() for r in mine}
        timed = all(r.metrics["step_seconds"].samples[0] for r in mine if r.outcome is Outcome.OK)
        right = len(mine) == 2 and all(r.outcome is wanted for r in mine) and timed
        got = "; ".join(f"{name} {said}" for name, said in told.items())
        say(answer(part, f"nonprivate and bk at B={size}: {wanted}", got, right, batch=size, outcomes=told))


CHECKS = (Check("out of memory", (TOO_LARGE, AFTER), 60.0, survival),)
