"""The allocated peak of a step against the traced one."""

from __future__ import annotations

from dataclasses import replace

from dpbench.complexity.faked import Faked
from dpbench.complexity.tracing import trace_of
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import Workload
from dpbench.reporting.numbers import size
from tests.benchmarks.gpu_check.asking import figures, why
from tests.benchmarks.gpu_check.check import Check, Say, answer, could_not
from tests.benchmarks.gpu_check.workloads import IMPLEMENTATIONS, WIDE

LOW, HIGH, WORKSPACE = 0.95, 1.10, 2.0
"""Of the traced peak. What an operator takes meanwhile is not traced; convolutions (of a ViT, too) take most."""
TRAINED = ("nonprivate", "bk", "opacus")
"""Whose whole training step is weighed, too."""
PARTS = [*WIDE, "gpt2, a training step with AdamW"]


def peaks(say: Say) -> None:
    """Each network's, and that of a training step."""
    with ForkServer() as server:
        for network, workload in WIDE.items():
            compared(say, server, network, workload, IMPLEMENTATIONS)
        compared(say, server, PARTS[-1], replace(WIDE["gpt2"], step="train", optimizer="adamw"), TRAINED)


def compared(say: Say, server: ForkServer, part: str, workload: Workload, names: tuple[str, ...]) -> None:
    """All implementations on one workload."""
    high = HIGH if workload.model.startswith("transformers:") else WORKSPACE
    expected = f"from {LOW:g} to {high:g} of the traced peak"
    found, ended = figures(server, Job(kind="memory", workload=workload, implementations=names))
    if not found:
        say(could_not(part, expected, why(ended)))
        return
    faked = Faked(replace(workload, device="cpu"))
    told = {}
    for name, values in found.items():
        trace, memory = trace_of(name, faked.workload, faked), values["memory"]
        told[name] = {
            **memory,
            "traced": trace.peak,
            "ratio": memory["peak_allocated"] / trace.peak,
            "traced_resident": trace.resident,
        }
    low, top = (pick(told, key=lambda n: told[n]["ratio"]) for pick in (min, max))
    got = ", ".join(
        f"{told[n]['ratio']:.3f} ({n}, {size(told[n]['peak_allocated'])})" for n in dict.fromkeys((low, top))
    )
    right = not ended and all(LOW <= t["ratio"] <= high for t in told.values())
    say(answer(part, expected, got + (f"; {why(ended)}" if ended else ""), right, peaks=told, ended=ended))


CHECKS = (Check("peak memory", PARTS, 60.0, peaks),)
