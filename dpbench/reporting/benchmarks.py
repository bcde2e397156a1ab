"""Results as pytest-benchmark has them: for its ``compare``, and for whatever else reads its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpbench.errors import DpbenchError, EmptySelection
from dpbench.records import MAX, Cell, Outcome, Record, Workload, plain
from dpbench.reporting.benchmarkstats import described
from dpbench.results import Results
from dpbench.rows import Row, rows
from dpbench.timed import SECONDS

FORMAT = "5.3.1"
"""The pytest-benchmark whose JSON this is."""

NOT_SAID = ("file", "outcome", "reason", "parity_passed")
"""Columns of which every benchmark has the same: a cell without a speed is none."""


class Exported(NamedTuple):
    """What there is to write, and what is not in it."""

    document: dict[str, Any]
    left_out: list[str]
    """The cells without a time that can be compared, and why."""


def named(cell: Cell) -> str:
    """The name of a cell: ``bk[transformers:gpt2 B=8 T=64]``, the same at every time."""
    return f"{cell.implementation}[{cell.workload.label()}]"


def of_one_size(workload: Workload) -> bool:
    """Whether steps of all implementations, and of all runs, take the same examples, so that times can be compared."""
    return workload.batch != MAX or workload.logical_batch is not None


def exported(files: Sequence[Results]) -> Exported:
    """One document of all files.

    Raises:
        DpbenchError: one cell of one suite is in two files, or they are of different machines.
        EmptySelection: no cell has a time that can be compared.
    """
    benchmarks: dict[str, dict[str, Any]] = {}
    homes: dict[str, Results] = {}
    left_out = []
    for results in files:
        if machine(results.header.environment) != machine(files[0].header.environment):
            raise DpbenchError(
                f"{files[0].path} and {results.path} were made on different machines or with different versions, "
                "of which one file tells one; export each on its own: pytest-benchmark compare takes several"
            )
        for record, row in zip(results.records, rows(results), strict=True):
            fullname = f"{results.header.suite}::{named(record.cell)}"
            if row.seconds is None or not of_one_size(row.workload):
                left_out.append(f"{fullname}: {_why(record)}")
                continue
            if fullname in benchmarks:
                raise DpbenchError(
                    f"{homes[fullname].path} and {results.path} both have {fullname}; export each on its own: "
                    "pytest-benchmark compare takes several"
                )
            benchmarks[fullname], homes[fullname] = _benchmark(fullname, record, row), results
        left_out += [f"{results.header.suite}::{named(cell)}: not run" for cell in results.missing]
    if not benchmarks:
        raise EmptySelection(
            f"no cell of {', '.join(str(r.path) for r in files)} has a time that can be compared; see: dpbench show"
        )
    document = {
        "machine_info": machine(files[0].header.environment),
        # Which commit of whose repository was measured, a results file does not tell.
        "commit_info": {
            "id": "unknown",
            "time": None,
            "author_time": None,
            "dirty": None,
            "project": files[0].header.suite,
            "branch": "(unknown)",
        },
        "benchmarks": list(benchmarks.values()),
        "datetime": files[0].header.started,
        "version": FORMAT,
    }
    return Exported(plain(document), left_out)


def extra_info(record: Record, row: Row) -> dict[str, Any]:
    """What is known of a benchmark besides its times: the columns that say something, and where it was taken."""
    columns = {name: value for name, value in row.flat().items() if name not in NOT_SAID and value not in (None, "")}
    environment, workload = record.environment, record.cell.workload
    where = {
        "torch": environment.get("versions", {}).get("torch"),
        "device_name": _device_name(workload.device, environment.get("machine", {})),
        "threads": workload.threads or environment.get("flags", {}).get("threads"),
        "dpbench": environment.get("dpbench", {}).get("version"),
        "source": record.source,
    }
    said: dict[str, Any] = plain(columns | {name: value for name, value in where.items() if value})
    return said


def machine(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Hardware and versions, under pytest-benchmark's names where it has any."""
    hardware, versions = environment.get("machine", {}), environment.get("versions", {})
    return {
        "node": hardware.get("id"),
        "processor": hardware.get("architecture"),
        "machine": hardware.get("architecture"),
        "python_version": versions.get("python"),
        "release": versions.get("system"),
        "system": hardware.get("system"),
        "cpu": {"brand_raw": hardware.get("cpu"), "count": hardware.get("logical_cores")},
        "gpus": hardware.get("gpus", []),
        "versions": versions,
    }


def _benchmark(fullname: str, record: Record, row: Row) -> dict[str, Any]:
    samples = [s for round_ in record.metrics[SECONDS].samples for s in round_]
    workload = record.cell.workload
    return {
        "group": workload.label(),
        "name": named(record.cell),
        "fullname": fullname,
        "params": None,
        "param": None,
        "extra_info": extra_info(record, row),
        "options": {
            "disable_gc": True,
            "timer": "perf_counter" if workload.device == "cpu" else "torch.cuda.Event",
            "warmup": True,
        },
        "stats": {**described(samples), "data": samples, "iterations": 1},
    }


def _device_name(device: str, hardware: Mapping[str, Any]) -> str | None:
    """None where a machine has cards of several kinds: torch may number them otherwise than the driver."""
    if not device.startswith("cuda"):
        return hardware.get("cpu")
    kinds = {gpu["name"] for gpu in hardware.get("gpus", [])}
    return kinds.pop() if len(kinds) == 1 else None


def _why(record: Record) -> str:
    if record.outcome is not Outcome.OK:
        return f"{record.outcome}: {record.reason}"
    if not of_one_size(record.cell.workload):
        return f"its step, at the largest batch ({record.batch}), is of another size than others'"
    return "it was not timed"
