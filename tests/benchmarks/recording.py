"""What recording alone costs: a forward of GPT-2 small under the tape, against the same forward without.

Run: ``make recording``. The time of the tape itself is taken on a narrow GPT-2 with as many layers,
whose forward makes the same calls, and is related to the forward at full width; there it would
drown in the noise of the matrix products.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dpbench.models import Task, build
from dpbench.parameters import trainable
from dpbench.probe import probe
from dpbench.recorder import Recorder
from dpbench.records import Workload
from dpbench.tape import Tape

B, T = 8, 100


class Count(TorchFunctionMode):
    """Counts calls."""

    calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def task(model: str) -> tuple[Task, Any]:
    built = build(Workload(model=model, batch=B, seq_len=T, attention="eager"))
    return built, built.batches(B, 0)


def times(built: Task, batch: Any, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of a plain forward and of a recorded one, in turn."""
    parameters = trainable(built.model)
    plan = probe(built.model, built.losses, batch, parameters, range(4))
    plain, recorded = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        built.losses(built.model, batch)
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        tape = Tape(parameters)
        with Recorder(tape, plan, B, attached=False) as recorder:
            recorder.finish(built.losses(built.model, batch))
        # The plain forward's graph is freed before its clock stops, so this one's is, too.
        tape.close()
        recorded.append(time.perf_counter() - start)
    return plain, recorded


def main() -> None:
    torch.set_num_threads(1)
    full, batch = task("transformers:gpt2")
    with Count() as count:
        full.losses(full.model, batch)
    plain, recorded = times(full, batch, 3)
    narrow, narrow_batch = task("transformers:gpt2(n_embd=12,vocab_size=100)")
    narrow_plain, narrow_recorded = times(narrow, narrow_batch, 60)
    extra = median(r - p for r, p in zip(narrow_recorded, narrow_plain, strict=True))
    forward = median(plain)
    print(f"forward of GPT-2 small, B={B}, T={T}, one thread: {forward:.3f} s, {count.calls} calls")
    print(f"recorded / plain at full width: {median(r / p for r, p in zip(recorded, plain, strict=True)):.4f}")
    print(
        f"recording, on a narrow model of the same calls: {extra * 1e3:.2f} ms = {extra / forward:.3%} of that forward"
    )
    print(f"per call: {extra / count.calls * 1e6:.2f} us")


if __name__ == "__main__":
    main()
