"""Every implementation's gradient on the device, held against the loop over the examples."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench.built import Built
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.dropout import without_dropout
from dpbench.forkserver import ForkServer
from dpbench.interface import Output
from dpbench.job import Job
from dpbench.parity import EXAMPLES, TOLERANCE, difference
from dpbench.records import Parity
from dpbench.reference import per_example
from tests.benchmarks.gpu_check.asking import figures, why
from tests.benchmarks.gpu_check.check import Answer, Check, Say, answer, could_not
from tests.benchmarks.gpu_check.driver import DEVICE
from tests.benchmarks.gpu_check.workloads import IMPLEMENTATIONS, SMALL

PRECISIONS = ("float64", "fp32", "tf32", "bf16", "amp-bf16")
PARTS = [f"{network} in {precision}" for precision in PRECISIONS for network in SMALL]
LOOPS = [f"the loop itself on {network}" for network in SMALL]


def gradients(say: Say) -> None:
    """As a run checks them: in float64, and in each precision against the loop's own error there."""
    with ForkServer() as server:
        for precision in PRECISIONS:
            for network, workload in SMALL.items():
                native = precision != "float64"
                job = Job(
                    kind="parity",
                    workload=replace(workload, precision=precision) if native else workload,
                    implementations=IMPLEMENTATIONS,
                    native=native,
                )
                say(judged(f"{network} in {precision}", *figures(server, job)))


def judged(part: str, found: dict[str, dict[str, Any]], ended: dict[str, str]) -> Answer:
    """All have to be right."""
    expected = f"all {len(IMPLEMENTATIONS)} implementations right"
    if not found:
        return could_not(part, expected, why(ended))
    parities: dict[str, Parity] = {name: values["parity"] for name, values in found.items()}
    wrong = {n: f"wrong in {p.worst} by {p.error:.2g}" for n, p in parities.items() if not p.passed}
    worst = max(parities, key=lambda n: parities[n].error)
    p = parities[worst]
    got = f"{len(found) - len(wrong)} right, at most {p.error:.1e} ({worst}) of {p.tolerance:.1e} allowed"
    if trouble := wrong | ended:
        got += f"; {why(trouble)}"
    return answer(part, expected, got, not trouble, parity={n: asdict(p) for n, p in parities.items()}, ended=ended)


def loops(say: Say) -> None:
    """The loop in float64 on the device and on the CPU: else one mistake in both would not be seen."""
    for network, workload in SMALL.items():
        built = Built(replace(workload, device="cpu"), EXAMPLES)
        model, losses, batch = double(built.model, without_dropout(built.model, built.losses), built.batch)
        clip = Clip(1.0)
        here = per_example(model, losses, batch, clip)
        there = pytree.tree_map_only(Tensor, lambda t: t.to(DEVICE), batch)
        found = on_cpu(per_example(model.to(DEVICE), losses, there, clip))
        error, where = difference(found, here, torch.finfo(torch.float64).eps)
        say(
            answer(
                f"the loop itself on {network}",
                f"within {TOLERANCE:g} of the CPU's, in float64",
                f"{error:.1e} in {where}",
                error <= TOLERANCE,
                error=error,
            )
        )


def on_cpu(out: Output) -> Output:
    """A copy there."""
    norms = None if out.norms is None else out.norms.cpu()
    return Output({name: g.cpu() for name, g in out.grads.items()}, norms, out.losses.cpu(), out.clip)


CHECKS = (Check("loop", LOOPS, 30.0, loops), Check("gradients", PARTS, 130.0, gradients))
