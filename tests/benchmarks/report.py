"""How long a report of 10 000 records takes, and how large its page is.

Run: ``make report-speed``. It keeps what it finds in ``results/reference/report.md``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from dpbench.checksum import sealed, unsealed
from dpbench.records import Cell, Outcome, Workload, to_json
from dpbench.reporting.columns import aligned
from dpbench.reporting.palette import KNOWN
from dpbench.results import Header, header_line
from tests.benchmarks.reading import used
from tests.records_for_tests import ENVIRONMENT, record

REFERENCE = Path("results/reference")
RECORDS, ROUNDS, SAMPLES = 10_000, 6, 4
LONGEST, LARGEST = 20.0, 5.0
"""Seconds of the processor, and MB of the page, that a report may take."""

MODELS = {
    "transformers:gpt2": ("seq_len", (64, 128, 256, 512)),
    "transformers:gpt2-medium": ("seq_len", (64, 128, 256, 512)),
    "transformers:roberta-base": ("seq_len", (64, 128, 256, 512)),
    "transformers:roberta-large": ("seq_len", (64, 128, 256, 512)),
    "timm:vit_base_patch16_224": ("image_size", (224, 384)),
    "torchvision:resnet18": ("image_size", (32, 224, 512)),
}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PRECISIONS = ("fp32", "bf16", "amp-bf16", "tf32")

COMMAND = "from dpbench.cli import main; main()"


def cells(number: int) -> list[Cell]:
    """All implementations over models, sizes, batches and precisions."""
    workloads = [
        Workload(model=model, batch=batch, precision=precision, threads=1, **{axis: size})
        for precision, (model, (axis, sizes)) in product(PRECISIONS, MODELS.items())
        for size, batch in product(sizes, BATCHES)
    ]
    return [Cell(name, workload) for workload in workloads for name in KNOWN][:number]


def write(path: Path, number: int) -> None:
    """A results file of so many cells; some ran out of memory, some were refused, some were wrong."""
    every, draw = cells(number), random.Random(0)
    header = Header(
        command="dpbench run made-up",
        suite="made-up",
        environment=ENVIRONMENT,
        cells=tuple(every),
        started="2030-01-02",
    )
    speed = {name: 1 + 0.09 * i for i, name in enumerate(KNOWN)}
    hunger = {name: 1 + (0.4 * i) % 3.1 for i, name in enumerate(KNOWN)}
    with path.open("w", encoding="utf-8") as file:
        file.write(header_line(header) + "\n")
        for cell in every:
            workload = cell.workload
            size = (workload.seq_len or workload.image_size or 1) * workload.physical
            memory = 1e5 * size * hunger[cell.implementation]
            outcome, reason = Outcome.OK, ""
            if memory > 1.5e10:
                outcome, reason = Outcome.OUT_OF_MEMORY, f"the worker reached its limit after {memory:.2e} bytes"
            elif draw.random() < 0.01:
                outcome, reason = Outcome.REFUSED, "per-layer clipping needs one factor per layer and example"
            elif draw.random() < 0.001:
                outcome, reason = Outcome.WRONG, f"wte.weight differs by {draw.random():.2e} (at most 1e-08)"
            middle = 1e-5 * (size + 500) * speed[cell.implementation]
            seconds = [[middle * draw.lognormvariate(0, 0.02) for _ in range(SAMPLES)] for _ in range(ROUNDS)]
            made = record(cell.implementation, workload, outcome, reason, seconds, memory)
            file.write(sealed(json.dumps(dict(_without_environment(to_json(made))), separators=(",", ":"))) + "\n")


def _without_environment(text: str) -> Iterator[tuple[str, object]]:
    return ((k, v) for k, v in json.loads(unsealed(text.encode())).items() if k != "environment")


def measured(path: Path, out: Path, formats: str) -> tuple[float, float, float]:
    """Seconds of the processor, seconds of the clock, and MB that were written."""
    before, started = used(), time.monotonic()
    words = ["report", path, "-o", out, "--formats", formats]
    subprocess.run([sys.executable, "-c", COMMAND, *words], check=True, stdout=subprocess.DEVNULL)
    written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    return used() - before, time.monotonic() - started, written / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "large.jsonl"
        write(path, RECORDS)
        table = [["dpbench report --formats", "processor", "clock", "written"]]
        for formats in ("html", "md,latex", "svg,png"):
            processor, clock, size = measured(path, Path(directory) / formats, formats)
            table.append([formats, f"{processor:.1f} s", f"{clock:.1f} s", f"{size:.1f} MB"])
            print(table[-1], file=sys.stderr)
            if formats == "html" and (processor > LONGEST or size > LARGEST):
                raise SystemExit(f"{processor:.1f} s, {size:.1f} MB; expected {LONGEST:g} s, {LARGEST:g} MB at most")
    workloads = 1 + (RECORDS - 1) // len(KNOWN)
    said = [
        "# A report of 10 000 records",
        "",
        f"Made by `make report-speed`, on two cores with a load of {os.getloadavg()[2]:.1f}: {RECORDS} made-up",
        f"records of {len(KNOWN)} implementations on {workloads} workloads, {ROUNDS} rounds of {SAMPLES} samples each.",
        "Other work on the same cores makes both times longer, that of the clock most.",
        "",
        *(f"    {line}" for line in aligned(table)),
    ]
    print("\n".join(said))
    (REFERENCE / "report.md").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
