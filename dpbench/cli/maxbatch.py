"""``dpbench maxbatch``: the largest batch that fits into a memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpbench.cards import card
from dpbench.cli.workloads import MODEL, STEP, AsJson, Axes, CardName, SuiteName, takes, workloads
from dpbench.errors import DpbenchError, unknown
from dpbench.records import Workload
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import ratio, size
from dpbench.sizes import bytes_of

if TYPE_CHECKING:
    from dpbench.complexity.maxbatch import Largest
    from dpbench.forkserver import ForkServer

ON = ("trace", "real")


@takes(*MODEL, *STEP)
def maxbatch(
    axes: Axes,
    suite: SuiteName = None,
    memory: Annotated[str | None, typer.Option(help="For the whole step: 40GB (1e9 bytes), 40GiB (2^30).")] = None,
    card_name: CardName = None,
    on: Annotated[str, typer.Option(help="trace: nothing is run; real: tried from there on, on --device.")] = "trace",
    device: Annotated[str, typer.Option("--device", "-d", help="torch's name, for --on real: cpu, cuda.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Find the largest batch whose step fits into a memory or a card, by tracing or by real steps.

    Of a card, what its context takes is left out; of --memory, nothing is.

    \b
    Exit codes:
      0  found; refusals are results
      2  a mistake in what was asked
      5  nothing selected
    """
    from dpbench.complexity.maxbatch import MOST, largest, worth_running
    from dpbench.precision import check_device

    check_device(device)
    if on not in ON:
        raise unknown("way of finding it", on, ON)
    capacity, said = capacity_asked(memory, card_name)
    asked = workloads(suite, {**axes, "batch": ["1"] if suite is None else None})
    everything: list[dict[str, Any]] = []
    with tried_by(on) as server:
        for workload, names in asked.items():
            found: list[dict[str, Any]] = []
            for name in names:
                start = {"implementation": name, "model": workload.model, "T": workload.seq_len}
                # A real step would go through a million examples one by one for hours.
                limit = MOST if server is None else worth_running(name)
                try:
                    most = largest(name, workload, capacity, limit)
                    figures = traced(most) if server is None else tried(name, workload, capacity, most, device, server)
                except DpbenchError as error:
                    found.append({**start, "max_batch": None, "reason": str(error)})
                    continue
                bytes_ = {**figures["bytes"], "resident": most.trace.resident, "capacity": capacity}
                found.append({**start, **figures, "bytes": bytes_, "peak_in": most.trace.peak_in})
                if not as_json:
                    typer.echo(f"  {name} {figures['max_batch']}", err=True)
            everything += found
            if not as_json:
                label = replace(workload, batch=1).label().replace(" B=1", "")
                typer.echo("\n".join([f"{label} in {said}", *lines(found)]) + "\n")
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


@contextmanager
def tried_by(on: str) -> Iterator[ForkServer | None]:
    """Who starts the processes of real steps; nobody where there are none."""
    if on == "trace":
        yield None
        return
    from dpbench.forkserver import ForkServer

    with ForkServer() as server:
        yield server


def traced(most: Largest) -> dict[str, Any]:
    """What tracing gave."""
    return {"max_batch": most.batch, "bytes": {"need": most.need, "next": most.next}}


def tried(
    name: str, workload: Workload, capacity: int, most: Largest, device: str, server: ForkServer
) -> dict[str, Any]:
    """The largest batch by real steps, from the traced one on."""
    from dpbench.complexity.maxbatch import worth_running
    from dpbench.realbatch import largest

    there, limit = replace(workload, device=device), worth_running(name)
    found = largest(name, there, capacity, most.batch, server, limit, lambda text: typer.echo(text, err=True))
    return {"max_batch": found.batch, "traced": found.traced, "bytes": {"need": found.need, "next": None}}


def capacity_asked(memory: str | None, card_name: str | None) -> tuple[int, str]:
    """Bytes for a step, and how they come about; raises DpbenchError unless one of both is given."""
    if (memory is None) == (card_name is None):
        raise DpbenchError("expected either --memory (40GB, 40GiB) or --card (see: dpbench list cards), and not both")
    if card_name is None:
        capacity = bytes_of(memory or "")
        return capacity, size(capacity)
    found = card(card_name)
    return found.capacity, f"{size(found.capacity)} of {found.name} (of {size(found.memory)})"


def lines(found: list[dict[str, Any]]) -> list[str]:
    """For people."""
    base = next((f["max_batch"] for f in found if f["implementation"] == "nonprivate"), None)
    real = any("traced" in f for f in found)
    table = [["implementation", "largest B", "ratio", "needs", "traced B" if real else "B + 1 needs", "peak in"]]
    notes = []
    for f in found:
        if f["max_batch"] is None:
            notes.append(f"{f['implementation']} refuses: {f['reason']}")
            continue
        more = "-" if f["bytes"]["next"] is None else size(f["bytes"]["next"])
        more = str(f["traced"]) if real else more
        relative = ratio(f["max_batch"] / base) if base else "-"
        batch = str(f["max_batch"]) if f["max_batch"] else "none fits"
        table.append([f["implementation"], batch, relative, size(f["bytes"]["need"]), more, f["peak_in"]])
    return [*(f"  {line}" for line in aligned(table)), *notes]
