"""Records as a sweep would give them, made up, so that nothing here needs torch."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpbench import store
from dpbench.coverage import Coverage
from dpbench.records import Cell, Metric, Outcome, Parity, Record, Workload

ENVIRONMENT = {"machine": {"id": "m1", "cpu": "made up"}, "versions": {"torch": "2.9.0"}}

SLOWNESS = {"nonprivate": 1.0, "bk": 1.06, "bk_mixopt": 1.04, "opacus": 1.5, "ghostclip": 1.65, "vmap": 1.9}
HUNGER = {"nonprivate": 1.0, "bk": 1.05, "bk_mixopt": 1.02, "opacus": 2.6, "ghostclip": 1.1, "vmap": 3.1}

COVERED = Coverage(124_000_000, 124_000_000, {}, {"ghost": 123_000_000, "vector": 1_000_000})
PARTIAL = Coverage(100, 88, {"cls_token": 4, "pos_embed": 8}, {"ghost": 85, "generic": 3})


def workload(model: str = "transformers:gpt2", batch: int = 8, **axes: Any) -> Workload:
    return Workload(model=model, batch=batch, **axes)


def record(
    implementation: str = "bk",
    on: Workload | None = None,
    outcome: Outcome = Outcome.OK,
    reason: str = "",
    seconds: Sequence[Sequence[float]] = ((0.5, 0.5, 0.5), (0.5, 0.5), (0.5,)),
    memory: float = 2e9,
    tokens: int | None = 128,
    error: float = 1e-15,
    source: str = "abc123",
    coverage: Coverage | None = COVERED,
) -> Record:
    metrics = {
        "step_seconds": Metric("s", tuple(tuple(r) for r in seconds)),
        "peak_live": Metric("bytes", ((memory,),)),
        "peak_process": Metric("bytes", ((memory + 1e9,),)),
        "resident": Metric("bytes", ((5e8,),)),
    }
    return Record(
        cell=Cell(implementation, on or workload()),
        outcome=outcome,
        reason=reason,
        metrics=metrics if outcome is Outcome.OK else {},
        parity=Parity(outcome is not Outcome.WRONG, error, 1e-8, "float64"),
        coverage=coverage,
        facts={
            "parameters": 124_000_000,
            "trainable": 124_000_000,
            "tokens": tokens,
            "source": "table",
            "kind": "lm",
        },
        environment={},
        source=source,
        command="dpbench run made-up",
        started="2030-01-02T03:04:05+00:00",
    )


def sweep(rounds: int = 3) -> list[Record]:
    """Two text models and an image model over B and T, with every outcome in it."""
    records = []
    for model, lengths in (
        ("transformers:gpt2", (64, 128, 256)),
        ("transformers:roberta-base", (64, 128, 256)),
        ("timm:vit_small", (None,)),
    ):
        for t in lengths:
            for batch in (4, 8, 16, 32):
                on = workload(model, batch, seq_len=t)
                for name, slow in SLOWNESS.items():
                    base = 1e-3 * (t or 196) / 64 * (batch + 2)
                    memory = 4e7 * batch * (t or 196) / 64 * HUNGER[name] ** 1.3
                    outcome, reason = Outcome.OK, ""
                    if memory > 5e9:
                        outcome, reason = Outcome.OUT_OF_MEMORY, "the worker reached its limit of 5.0 GB"
                    elif name == "ghostclip" and model.startswith("timm"):
                        outcome, reason = (
                            Outcome.REFUSED,
                            "per-layer clipping needs one factor per layer and example",
                        )
                    elif name == "vmap" and batch == 4 and t == 64 and "roberta" in model:
                        outcome, reason = Outcome.WRONG, "embeddings.weight differs by 0.13 (at most 1e-8)"
                    seconds = [
                        [base * slow * (1 + 0.02 * math.sin(7 * r + i + len(name))) for i in range(5)]
                        for r in range(rounds)
                    ]
                    records.append(record(name, on, outcome, reason, seconds, memory, t))
    return records


def write(
    directory: Path,
    records: Sequence[Record],
    suite: str = "made-up",
    environment: Mapping[str, Any] = ENVIRONMENT,
    started: datetime | None = None,
) -> Path:
    """A results file with these records."""
    cells = [r.cell for r in records]
    with store.create(suite, cells, environment, "dpbench run made-up", directory, started) as writer:
        for r in records:
            writer.append(r)
    return writer.path


FIRST_NIGHT = datetime(2030, 1, 1, 2, tzinfo=UTC)


def nights(
    directory: Path,
    number: int,
    made: Callable[[int], Sequence[Record]],
    environment: Callable[[int], Mapping[str, Any]] = lambda night: ENVIRONMENT,
) -> list[Path]:
    """A results file for each of so many nights, with the records that ``made`` gives for it."""
    return [
        write(directory, made(n), "nightly", environment(n), FIRST_NIGHT + timedelta(days=n)) for n in range(number)
    ]


def rounds_of(middle: float, seed: int, noise: float = 0.005) -> list[list[float]]:
    """Six rounds of three timings around ``middle``."""
    rng = random.Random(seed)
    return [[middle * math.exp(rng.gauss(0, noise)) for _ in range(3)] for _ in range(6)]
