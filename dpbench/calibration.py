"""This machine as a card: its speeds measured, in place of published peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

import psutil
import torch

from dpbench.cards import CONTEXT, Card, calibrated_name
from dpbench.precision import check_device

SIZES = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the matrices that are multiplied, by kind of device: large enough for the full speed."""
COPIED = 2**28
"""Bytes of the tensor that is copied: more than any cache holds."""
CALLS = 100
"""Operators in the chain whose calls are timed, forwards; as many follow backwards."""
DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SECONDS, BATCHES = 0.5, 9
"""Of timing for each figure, and the number of batches of calls in it, of which the median is taken."""

Timed = Callable[[Callable[[], object]], float]
"""Seconds of one call, the median of many."""


def calibrate(device: str = "cpu", threads: int | None = None, timed: Timed | None = None) -> Iterator[Card | str]:
    """Measure matrix products, a copy and the call of an operator; names of what is measured, and the card at last.

    ``timed`` is how a call is timed.

    Raises:
        DpbenchError: the device is not there.
    """
    where = check_device(device)
    torch.set_num_threads(threads or torch.get_num_threads())
    timed = timed or _timed(where)
    cuda = where.type == "cuda"
    peaks: dict[str, float] = {}
    for name in ("fp64", "fp32", *(("tf32", "fp16") if cuda else ()), "bf16"):
        yield name
        peaks[name] = _products(name, where, timed)
    yield "bandwidth"
    source = torch.ones(COPIED, dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    bandwidth = 2 * COPIED / timed(lambda: target.copy_(source))
    yield "launch"
    launch = timed(lambda: _chain(where)) / (2 * CALLS)
    of = torch.cuda.get_device_properties(where) if cuda else None
    what = of.name if of else f"CPU, {torch.get_num_threads()} threads"
    yield Card(
        name=calibrated_name(where.type),
        memory=of.total_memory if of else psutil.virtual_memory().total,
        reserved=CONTEXT if of else psutil.virtual_memory().total - psutil.virtual_memory().available,
        bandwidth=bandwidth,
        launch=launch,
        peaks=peaks,
        torch_names=(of.name,) if of else (),
        source=f"measured on this machine ({what}), torch {torch.__version__}, {datetime.now(UTC):%Y-%m-%d}",
        threads=None if of else torch.get_num_threads(),
    )


def _timed(device: torch.device) -> Timed:
    """On CUDA the calls of one batch are enqueued and waited for together, as those of a step are."""
    wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def seconds(call: Callable[[], object], calls: int) -> float:
        wait()
        start = perf_counter()
        for _ in range(calls):
            call()
        wait()
        return (perf_counter() - start) / calls

    def timed(call: Callable[[], object]) -> float:
        seconds(call, 2)
        calls = max(1, int(SECONDS / BATCHES / seconds(call, 2)))
        return median(seconds(call, calls) for _ in range(BATCHES))

    return timed


def _products(name: str, device: torch.device, timed: Timed) -> float:
    """FLOP/s of a square matrix product in one number format."""
    n = SIZES[device.type] // (2 if name == "fp64" else 1)
    dtype = DTYPES.get(name, torch.float32)
    # Not of ones: a GPU draws less power for constants, and clocks higher.
    a, b = torch.randn(2, n, n, device=device).to(dtype)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        return 2 * n**3 / timed(lambda: torch.mm(a, b))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _chain(device: torch.device) -> None:
    """Small operators one after another, forwards and backwards: nothing but calls."""
    x = torch.ones(8, device=device, requires_grad=True)
    y = x
    for _ in range(CALLS):
        y = y * 1.0
    torch.autograd.grad(y, x, x.detach())
