"""CUDA's events against the wall clock."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter

import torch

from dpbench.built import Built
from dpbench.meters.cuda import CudaMeter
from dpbench.prepared import Prepared
from dpbench.reporting.numbers import duration
from tests.benchmarks.gpu_check.check import Answer, Check, Say, answer
from tests.benchmarks.gpu_check.workloads import WIDE

STEPS = 20
MOST_ABOVE, MOST_BELOW = 0.01, 0.10
"""How far events may lie above and below the wall clock, which waits for the device as well."""
ONE, MANY = "one step at a time", "steps that are waited for together"


def events(say: Say) -> None:
    """Of single steps, and of a row of them, as a round times them."""
    workload = replace(WIDE["gpt2"], batch=128)
    built = Built(workload, workload.physical)
    step, meter = Prepared("bk", built, workload), CudaMeter(built.device)
    for _ in range(3):
        step.warm_up()
    wall = []
    for _ in range(STEPS):
        torch.cuda.synchronize(built.device)
        start = perf_counter()
        step.time(meter)
        torch.cuda.synchronize(built.device)
        wall.append(perf_counter() - start)
    say(compared(ONE, [s.seconds for s in meter.samples()], wall))
    torch.cuda.synchronize(built.device)
    start = perf_counter()
    for _ in range(STEPS):
        step.time(meter)
    samples = [s.seconds for s in meter.samples()]
    say(compared(MANY, samples, [(perf_counter() - start) / STEPS]))


def compared(part: str, samples: list[float], wall: list[float]) -> Answer:
    """Medians."""
    mine, clock = median(samples), median(wall)
    apart = mine / clock - 1
    expected = f"events from {MOST_BELOW:.0%} below to {MOST_ABOVE:.0%} above the wall clock"
    got = f"{duration(mine)} by events, {duration(clock)} by the clock: {apart:+.2%}"
    return answer(part, expected, got, -MOST_BELOW <= apart <= MOST_ABOVE, events=samples, wall=wall)


CHECKS = (Check("events", (ONE, MANY), 30.0, events),)
