"""All checks, the most worth first: what the time does not reach is the least."""

from __future__ import annotations

from tests.benchmarks.gpu_check import device, events, gradients, largest, paper, peaks, speeds, survival
from tests.benchmarks.gpu_check.check import Check

CHECKS: tuple[Check, ...] = (
    *device.CHECKS,
    *gradients.CHECKS,
    *survival.CHECKS,
    *peaks.CHECKS,
    *paper.TABLES[:1],
    *events.CHECKS,
    *largest.CHECKS,
    *paper.TABLES[1:],
    *speeds.CHECKS,
)
