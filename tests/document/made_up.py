"""A report such as a sweep gives, made up: tables and charts of every kind, and records with every outcome."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dpbench.document.parts import Chart, Column, Document, Entry, Grid, Kind, Section, Source, Taken
from dpbench.document.works import BU_2023, LI
from dpbench.records import Outcome, Record
from dpbench.reporting import plots
from dpbench.reporting.panels import panels_of
from dpbench.rows import Row, rows
from tests.records_for_tests import HUNGER, SLOWNESS, sweep

NASTY = "my \"own\" <b>model</b> & co. </script><script>alert('x')</script> <!-- \N{ROCKET} {{ 7*7 }}"
"""A name that means something to HTML, to scripts, to templates, and to nobody else."""

VERSIONS = {"dpbench": "0.1.0", "python": "3.11.2", "torch": "2.9.0", "transformers": "5.0.0"}


def source(id: str, records: int, **other: object) -> Source:
    given = {
        "id": id,
        "file": f"results/made-up-2030010{ord(id) % 10}T030405Z.jsonl",
        "title": "sweep of two text models and an image model",
        "command": "dpbench run made-up --rounds 6 -k 'gpt2 and B=8'",
        "started": "2030-01-02T03:04:05Z",
        "machine": "made-up CPU, 8 cores, 64 GB, Linux 6.1",
        "versions": VERSIONS,
        "records": records,
    }
    return Source(**{**given, **other})


def taken(row: Row, line: int) -> Taken:
    record = row.record
    figures = {
        "reason": record.reason or None,
        "examples_per_s": row.examples_per_s,
        "seconds": row.seconds,
        "memory": row.memory,
        "speed_relative": row.speed_relative,
        "memory_relative": row.memory_relative,
        "error": row.parity_error,
        "rounds": row.rounds,
    }
    workload = record.cell.workload.label()
    return Taken("A", line, record.cell.implementation, workload, record.outcome.value, figures)


def entry(row: Row, place: int, best: bool) -> Entry:
    record = row.record
    if record.outcome is not Outcome.OK:
        kind = Kind.BAD if record.outcome is Outcome.WRONG else Kind.MUTED
        return Entry(record.outcome.value, None, place, record.reason, kind)
    low, high = row.speed_relative_low, row.speed_relative_high
    interval = "" if low is None else f" ({low:.2f}\N{EN DASH}{high:.2f})"
    return Entry(
        f"{row.speed_relative:.2f}{interval}", row.speed_relative, place, "", Kind.BEST if best else Kind.PLAIN
    )


def beside(every: Sequence[Row]) -> Grid:
    by_workload: dict[str, dict[str, tuple[int, Row]]] = {}
    for i, row in enumerate(every):
        by_workload.setdefault(row.workload.label(), {})[row.implementation] = i, row
    columns = (
        Column("workload", numeric=False),
        Column("non-private", "examples/s"),
        *(Column(name, implementation=name) for name in SLOWNESS if name != "nonprivate"),
    )
    lines = []
    for label, found in by_workload.items():
        private = {name: given for name, given in found.items() if name != "nonprivate"}
        speeds = {name: row.speed_relative or 0 for name, (_, row) in private.items()}
        at, baseline = found["nonprivate"]
        speed = baseline.examples_per_s
        lines.append(
            (
                Entry(label),
                Entry("\N{EN DASH}" if speed is None else f"{speed:.3g}", speed, at),
                *(entry(row, i, speeds[name] == max(speeds.values()) > 0) for name, (i, row) in private.items()),
            )
        )
    caption = "Speed relative to non-private training, with 95 % intervals over fresh processes; higher is better."
    notes = ("Speeds are compared within one file only, round by round.",)
    return Grid("beside", caption, columns, tuple(lines), notes, ("A",))


def who_was_right() -> Grid:
    columns = (
        Column("implementation", numeric=False),
        Column("error"),
        Column("peak memory", "GB"),
        Column("remark", numeric=False),
    )
    lines = (
        *(
            (Entry(name), Entry(f"{i + 1}.2e-15", (i + 1.2) * 1e-15), Entry(f"{hunger:.1f}", hunger), Entry("right"))
            for i, (name, hunger) in enumerate(HUNGER.items())
        ),
        (
            Entry(NASTY),
            Entry("0.13", 0.13, 5, "embeddings.weight differs by 0.13 (at most 1e-8)", Kind.BAD),
            Entry("\N{EN DASH}", kind=Kind.MUTED),
            Entry("wrong", note=NASTY, kind=Kind.BAD),
        ),
    )
    return Grid("gradients", "Who was right, and by how much.", columns, lines, sources=("A", "B"))


def charts(records: Sequence[Record], every: Sequence[Row]) -> tuple[Chart, ...]:
    places = tuple(i for i, record in enumerate(records) if record.outcome is Outcome.OK)
    made = []
    for quantity in plots.QUANTITIES:
        for size, title in (("batch", "batch size"), ("seq_len", "sequence length")):
            draw = partial(plots.draw, panels_of(every, size), size, quantity)
            alt = f"Lines of {quantity.name} over {title}, one for each implementation, in small panels by model."
            name = f"{quantity.name}-vs-{size.replace('_', '-')}"
            caption = f"{quantity.name.capitalize()} against {title}. A cross: out of memory."
            made.append(Chart(name, caption, draw, alt, ("A",), places))
    return tuple(made)


def small(records: Sequence[Taken] = (), sections: Sequence[Section] = ()) -> Document:
    """Little more than these records."""
    return Document("Small", "by dpbench", (), (), (), tuple(sections), (source("A", len(records)),), tuple(records))


def document() -> Document:
    records = sweep(6)
    every = rows(records)
    throughput, longer, memory, memory_longer = charts(records, every)
    prose = (
        "Each implementation was timed beside non-private training in the same processes, interleaved; the ratio of "
        "a round is taken within that round. Where an implementation was wrong, no speed is reported.",
    )
    sections = (
        Section("beside", "Beside non-private training", prose, (beside(every),)),
        Section("throughput", "Throughput", ("Higher is better.",), (throughput, longer)),
        Section("memory", "Peak memory", ("Lower is better.",), (memory, memory_longer)),
        Section("gradients", "Gradients", ("Every gradient against the explicit loop.",), (who_was_right(),)),
        Section("nasty", NASTY, (NASTY,)),
    )
    records_taken = [taken(row, i + 2) for i, row in enumerate(every)]
    nasty = Taken(
        "B", 0, NASTY, NASTY, "failed", {"reason": NASTY, "ratio": float("nan"), "modules": {"1": 7, "2a": 7}}
    )
    return Document(
        title="DP-SGD gradients on two text models and an image model",
        made="dpbench 0.1.0, dpbench report results/made-up-20300102T030405Z.jsonl, 2030-01-03T08:00:00Z",
        summary=(
            "1 of 168 cells is wrong: vmap on transformers:roberta-base B=4 T=64; it has no speed here.",
            "bk_mixopt is the fastest private implementation on all 28 workloads, at 0.96 of non-private speed.",
            "vmap needs the most memory: 4.4 times that of non-private training.",
        ),
        methods=(
            "We measured on a made-up CPU with 8 cores (torch 2.9.0, float32, one thread). Each cell was timed in 6 "
            "fresh processes, interleaved with non-private training; we report medians with 95 % bootstrap intervals.",
            "Every gradient was compared with an explicit loop over the examples in float64.",
        ),
        citations=(BU_2023, LI),
        sections=sections,
        sources=(
            source("A", len(records)),
            source(
                "B",
                1,
                title=NASTY,
                command=f"dpbench run --model '{NASTY}'",
                missing=3,
                remarks=("another machine than A's", "its last line is torn"),
            ),
        ),
        records=(*records_taken, nasty),
        facts={"cells": "168", "ok": "141", "out of memory": "22", "refused": "4", "wrong": "1", "machine": "1"},
    )
