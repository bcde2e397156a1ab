"""How long one trace of a large model takes, and what memory: each in a process of its own.

Run: ``make tracing``. It keeps what it finds in ``results/reference/tracing.md``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from dpbench.records import Workload
from dpbench.reporting.columns import aligned

REFERENCE = Path("results/reference")
WORKLOADS = {
    "GPT-2 large": Workload(model="transformers:gpt2-large", batch=20, seq_len=100, attention="eager"),
    "RoBERTa-large": Workload(model="transformers:roberta-large", batch=16, seq_len=256, attention="eager"),
    "ViT-large": Workload(model="timm:vit_large_patch16_224", batch=8),
    "BEiT-large, 512 px": Workload(model="timm:beit_large_patch16_224", batch=4, image_size=512),
    "VGG19, 1024 px": Workload(model="torchvision:vgg19", batch=2, image_size=1024),
}


def one(name: str) -> None:
    """Trace bk on one of them; imports of the model's library are part of building it, those of torch are not."""
    from dpbench.complexity.faked import Faked
    from dpbench.complexity.tracing import Tracer

    workload = WORKLOADS[name]
    start = time.perf_counter()
    task = Faked(workload)
    built = time.perf_counter()
    with Tracer("bk", task) as tracer:
        tracer.at(workload.physical)
        first = time.perf_counter()
        tracer.at(workload.physical + 1)
        second = time.perf_counter()
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    figures = (built - start, first - built, second - first, first - start)
    print("\t".join([*(f"{seconds:.1f} s" for seconds in figures), f"{gigabytes:.2f} GB"]))


def main() -> None:
    table = [["bk on", "build", "first trace", "each further", "build and first", "memory"]]
    for name in WORKLOADS:
        command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.tracing", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        table.append([name, *done.stdout.strip().split("\t")])
        print(table[-1], file=sys.stderr)
    said = ["# Times of traces", "", "Made by `make tracing`, on two shared cores.", ""]
    said += [f"    {line}" for line in aligned(table)]
    print("\n".join(said))
    (REFERENCE / "tracing.md").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else main()
