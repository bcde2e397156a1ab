"""Run: ``make gpu-check``, or ``python -m tests.benchmarks.gpu_check [--budget 300] [--output FILE] [--check NAME]``.

Exit codes: 0 nothing differs, or there is no CUDA device and nothing is claimed; 1 something differs; 2 usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dpbench.child import Launcher
from dpbench.forkserver import ForkServer
from tests.benchmarks.gpu_check.check import Check, Verdict
from tests.benchmarks.gpu_check.checks import CHECKS
from tests.benchmarks.gpu_check.driver import Answered, driven
from tests.benchmarks.gpu_check.keeping import kept
from tests.benchmarks.gpu_check.table import lines, summary

WORK = "tests.benchmarks.gpu_check.child:work"
DIRECTORY = Path("results/gpu-check")
"""Beside the results of runs, not among them."""


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="gpu-check", description="Check on a CUDA device what a CPU cannot show.")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for all checks together (300)")
    parser.add_argument("--output", type=Path, help=f"results file; by default a new one in {DIRECTORY}/")
    parser.add_argument(
        "--check", action="append", choices=[c.name for c in CHECKS], help="this one alone; may be repeated"
    )
    return parser.parse_args(arguments)


def missing() -> str:
    """Why there is no CUDA device to check; empty where there is one. CUDA is not started here."""
    import torch

    if torch.version.cuda is None:
        return "this torch was built without CUDA"
    return "" if torch.cuda.device_count() else "torch sees no CUDA device"


def checked(launcher: Launcher, checks: Sequence[Check], budget_s: float, path: Path) -> int:
    """Run the checks, print and keep their answers; the exit code."""
    from dpbench.environment import environment

    answered: list[Answered] = []
    with kept(path) as file:
        file.header(budget_s=budget_s, checks={c.name: list(c.parts) for c in checks}, environment=environment())
        for one in driven(launcher, checks, budget_s):
            answered.append(one)
            file.answered(one)
            print("\n".join(lines(one)), flush=True)
        said = summary(answered)
        file.end(summary=said)
    print(f"{said}\n{path}", flush=True)
    return int(any(one.answer.verdict is Verdict.DIFFERS for one in answered))


def main(arguments: Sequence[str], missing: Callable[[], str] = missing) -> int:
    """The exit code."""
    asked = options(arguments)
    if why := missing():
        print(f"gpu-check: {why}: nothing was checked, and nothing is claimed")
        return 0
    checks = [c for c in CHECKS if not asked.check or c.name in asked.check]
    path = asked.output or DIRECTORY / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    with ForkServer(work=WORK) as server:
        return checked(server, checks, asked.budget, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
