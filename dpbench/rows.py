"""The figures of a record, ready to be shown: seconds, throughput, memory, and their ratios to a baseline.

A ratio is taken only between cells of one file and one workload, and speeds only round by round,
because only those were timed interleaved in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar

from dpbench import stats
from dpbench.coverage import NormMethod
from dpbench.garbage import uncollected
from dpbench.records import MAX, Metric, Outcome, Record, Roofline, Workload
from dpbench.results import Results
from dpbench.timed import SECONDS

MEMORY = ("peak_live", "peak_allocated")
"""The metric that is called memory: the first that a record has."""

T = TypeVar("T")


class Figure(Generic[T]):
    """An attribute of a row that is taken when it is first asked for, and then kept.

    :func:`functools.cached_property` takes a lock as well, which costs more than most figures do.
    """

    def __init__(self, of: Callable[[Row], T]) -> None:
        self.of = of

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, row: Row, owner: type) -> T:
        value = self.of(row)
        vars(row)[self.name] = value  # where Python finds it the next time
        return value


class Row:
    """One cell and its figures. A figure is None if it was not measured or the outcome is not ok."""

    def __init__(self, record: Record, baseline: Row | None = None, file: str = "") -> None:
        """``baseline``: what it is compared with, of the same workload."""
        self.record, self.baseline, self.file = record, baseline, file
        self.implementation, self.workload = record.cell.implementation, record.cell.workload
        self.outcome = record.outcome

    batch: Figure[int | None] = Figure(lambda row: row.record.batch)
    """The physical batch that it ran at, which the workload does not say where its own is ``max``."""
    batch_is_max: Figure[bool] = Figure(lambda row: row.workload.batch == MAX)
    reason: Figure[str] = Figure(lambda row: row.record.reason)
    parity_passed: Figure[bool | None] = Figure(lambda row: p.passed if (p := row.record.parity) else None)
    parity_error: Figure[float | None] = Figure(lambda row: p.error if (p := row.record.parity) else None)
    coverage: Figure[float | None] = Figure(lambda row: _coverage(row.record))
    frozen: Figure[tuple[str, ...]] = Figure(lambda row: tuple(c.frozen) if (c := row.record.coverage) else ())
    ghost: Figure[float | None] = Figure(lambda row: _found(row.record, NormMethod.GHOST))
    instantiated: Figure[float | None] = Figure(lambda row: _found(row.record, NormMethod.INSTANTIATED))
    vector: Figure[float | None] = Figure(lambda row: _found(row.record, NormMethod.VECTOR))
    generic: Figure[float | None] = Figure(lambda row: _found(row.record, NormMethod.GENERIC))
    loop: Figure[float | None] = Figure(lambda row: _found(row.record, NormMethod.LOOP))
    time: Figure[stats.Estimate | None] = Figure(lambda row: stats.typical(_timings(row.record)))
    rounds: Figure[int] = Figure(lambda row: row.time.rounds if row.time else 0)
    per_example: Figure[list[list[float]]] = Figure(lambda row: _per_example(row.record))
    """The median seconds of each round, of one example of a step; nothing in a round that was lost."""
    outliers: Figure[int] = Figure(lambda row: sum(len(stats.outliers(r)) for r in _timings(row.record)))
    scatter: Figure[float | None] = Figure(lambda row: stats.scatter(_timings(row.record)))
    unsettled: Figure[int] = Figure(lambda row: sum(not r.settled for r in row.record.rounds))
    throttled: Figure[int] = Figure(lambda row: sum(bool(r.state.throttled) for r in row.record.rounds))
    others: Figure[float | None] = Figure(lambda row: _others(row.record))
    seconds: Figure[float | None] = Figure(lambda row: row.time.value if row.time else None)
    seconds_low: Figure[float | None] = Figure(lambda row: row.time.low if row.time else None)
    seconds_high: Figure[float | None] = Figure(lambda row: row.time.high if row.time else None)
    examples_per_s: Figure[float | None] = Figure(lambda row: _per_second(row, row.record.examples))
    tokens_per_s: Figure[float | None] = Figure(lambda row: _tokens_per_second(row))
    speed: Figure[stats.Estimate | None] = Figure(lambda row: _speed(row))
    speed_relative: Figure[float | None] = Figure(lambda row: row.speed.value if row.speed else None)
    speed_relative_low: Figure[float | None] = Figure(lambda row: row.speed.low if row.speed else None)
    speed_relative_high: Figure[float | None] = Figure(lambda row: row.speed.high if row.speed else None)
    speed_relative_smallest: Figure[float | None] = Figure(lambda row: row.speed.smallest if row.speed else None)
    speed_relative_largest: Figure[float | None] = Figure(lambda row: row.speed.largest if row.speed else None)
    memory: Figure[float | None] = Figure(lambda row: memory_of(row.record))
    memory_relative: Figure[float | None] = Figure(lambda row: _memory_relative(row))
    process_peak: Figure[float | None] = Figure(lambda row: _value(row.record, "peak_process"))
    resident: Figure[float | None] = Figure(lambda row: _value(row.record, "resident"))
    flops: Figure[int | None] = Figure(lambda row: t.flops if (t := row.record.traced) else None)
    traffic: Figure[int | None] = Figure(lambda row: t.bytes if (t := row.record.traced) else None)
    traced_peak: Figure[int | None] = Figure(lambda row: t.peak if (t := row.record.traced) else None)
    predicted_seconds: Figure[float | None] = Figure(lambda row: r.expected if (r := _roofline(row.record)) else None)
    predicted_card: Figure[str | None] = Figure(lambda row: r.card if (r := _roofline(row.record)) else None)
    parameters: Figure[int | None] = Figure(lambda row: row.record.facts.get("parameters"))
    trainable_parameters: Figure[int | None] = Figure(lambda row: row.record.facts.get("trainable"))
    tokens: Figure[float | None] = Figure(lambda row: row.record.facts.get("tokens"))
    config: Figure[str | None] = Figure(lambda row: row.record.facts.get("source"))
    started: Figure[str] = Figure(lambda row: row.record.started)

    @property
    def partial(self) -> bool:
        """Whether parameters were left out: then its figures are of less work than others'."""
        return self.outcome is not Outcome.REFUSED and self.coverage is not None and self.coverage < 1

    def flat(self) -> dict[str, Any]:
        """All of it by column name, the fields of the workload among them; keys are those of COLUMNS."""
        values = {name: getattr(self.workload if name in _AXES else self, name) for name in COLUMNS}
        values |= {"workload": _key(self.workload), "outcome": str(self.outcome)}
        return values | {"frozen": ", ".join(self.frozen)}


COLUMNS = {
    "file": "results file that the row comes from",
    "workload": "short hash of the workload: rows with the same one in the same file may be compared",
    "implementation": "name of the implementation",
    "model": "family:name(options)",
    "batch": "B, physical batch size, examples: what was found where max was asked for, empty if none was",
    "batch_is_max": "whether the largest batch that fits was asked for, for each implementation its own",
    "logical_batch": "examples of one step, as several physical batches; empty: one physical batch",
    "seq_len": "T, tokens; empty: the model's own",
    "image_size": "height and width, pixels; empty: the model's own",
    "layers": "number of layers; empty: the model's own",
    "classes": "number of classes; empty: the model's own",
    "precision": "fp32, tf32, bf16 or amp-bf16",
    "attention": "eager or sdpa; empty: the model's own",
    "checkpointing": "whether the activations of blocks are computed again in the backward",
    "loss_chunk": "tokens of an example whose logits and loss are computed at a time; empty: all",
    "norm": "group: batch norm was replaced by group norm",
    "trainable": "which parameters are trained",
    "step": "gradient: forward, clip, sum; train: noise, scaling and optimizer as well",
    "optimizer": "sgd, adamw or adamw_loop; used in a train step",
    "max_norm": "R, clipping norm",
    "clip_function": "abadi, automatic or normalize",
    "clip_style": "flat, or how parameters are grouped for clipping",
    "device": "torch's name of the device",
    "threads": "CPU threads; empty: torch's default",
    "seed": "seed of weights and batch",
    "outcome": "ok, wrong, refused, out of memory, timed out or failed",
    "reason": "why, if the outcome is not ok",
    "parity_passed": "whether the gradient agrees with the explicit per-example loop",
    "parity_error": "largest relative error against that loop",
    "coverage": "parameters that got a gradient / parameters that were asked to be trained; 0 where it refused",
    "frozen": "names of the parameters that were asked to be trained and got no gradient",
    "ghost": "share of the parameters whose norms are found without per-sample gradients; empty: not told",
    "instantiated": "share whose per-sample gradients are formed for it, by a rule of their own",
    "vector": "share of biases, scales and bare parameters, instantiated whatever the algorithm",
    "generic": "share whose per-sample gradients are formed by the generic rule, which is slow",
    "loop": "share whose gradients are formed one example at a time",
    "rounds": "rounds that were timed, a fresh process each",
    "outliers": "timings with a modified z-score above 3.5 in their round; they are counted, not removed",
    "scatter": "distance between the quartiles of a round's timings, relative to their median; the rounds' median",
    "unsettled": "rounds in which steps were still getting faster when the warm-up's time was up",
    "throttled": "rounds in which a clock was held down, and that count, since repeating them did not help",
    "others": "share of the CPU time of all cores that went to other processes, median of the rounds; empty: not told",
    "seconds": "s per step: median of the rounds' medians",
    "seconds_low": f"lower end of its 95 % interval; empty below {stats.MIN_ROUNDS} rounds",
    "seconds_high": f"upper end of its 95 % interval; empty below {stats.MIN_ROUNDS} rounds",
    "examples_per_s": "examples of one step / seconds",
    "tokens_per_s": "examples_per_s x tokens; empty for models without tokens",
    "speed_relative": "throughput / throughput of the baseline: geometric mean of the rounds' ratios",
    "speed_relative_low": f"lower end of its 95 % interval; empty below {stats.MIN_ROUNDS} rounds",
    "speed_relative_high": f"upper end of its 95 % interval; empty below {stats.MIN_ROUNDS} rounds",
    "speed_relative_smallest": "smallest of the rounds' ratios",
    "speed_relative_largest": "largest of the rounds' ratios",
    "memory": "bytes, peak of live tensors above parameters, buffers and batch (CUDA: peak allocated)",
    "memory_relative": "memory / memory of the baseline",
    "process_peak": "bytes, peak resident memory of the process",
    "resident": "bytes that were there before the step",
    "flops": "FLOPs of a step, counted in a trace; empty: not traced",
    "traffic": "bytes that a step reads and writes, counted in a trace",
    "traced_peak": "bytes, peak memory counted in a trace, above parameters, buffers and batch",
    "predicted_seconds": "s per step that a roofline gives for the device it was run on; empty: its speeds not known",
    "predicted_card": "the card whose speeds these are: here, here:cuda, or a name of dpbench list cards",
    "parameters": "number of parameters of the model",
    "trainable_parameters": "number of those that are trained",
    "tokens": "tokens per example; empty for models without tokens",
    "config": "where the model's configuration comes from",
    "started": "ISO 8601, UTC",
}
"""What each column means; also the order of the columns."""


_AXES = {f.name for f in fields(Workload)} - {"batch"}
_key = cache(Workload.key)


@uncollected()
def rows(results: Results | Iterable[Record], baseline: str = "nonprivate", file: str = "") -> list[Row]:
    """The rows of one file, or of records that were taken in one run, in their order."""
    if isinstance(results, Results):
        records, file = list(results.records), file or str(results.path)
    else:
        records = list(results)
    compared = {r.cell.workload: Row(r) for r in records if r.cell.implementation == baseline and _is_whole(r)}
    return [Row(r, compared.get(r.cell.workload), file) for r in records]


def _is_whole(record: Record) -> bool:
    """Whether others may be compared with it: it is ok, and trained everything."""
    return record.outcome is Outcome.OK and (record.coverage is None or record.coverage.share == 1)


def _coverage(record: Record) -> float | None:
    if record.outcome is Outcome.REFUSED:
        return 0.0
    return record.coverage.share if record.coverage else None


def _roofline(record: Record) -> Roofline | None:
    return record.traced.roofline if record.traced else None


def _found(record: Record, method: NormMethod) -> float | None:
    return record.coverage.by(method) if record.coverage else None


def _metric(record: Record, *names: str) -> Metric | None:
    """The first of these that it has; none of a gradient that is not ok."""
    if record.outcome is not Outcome.OK:
        return None
    return next((record.metrics[name] for name in names if name in record.metrics), None)


def _value(record: Record, *names: str) -> float | None:
    metric = _metric(record, *names)
    estimate = stats.typical(metric.samples) if metric else None
    return estimate.value if estimate else None


def _timings(record: Record) -> stats.Rounds:
    """Seconds by round; none where it is not known of how many examples."""
    metric = _metric(record, SECONDS)
    return metric.samples if metric and record.examples else ()


def _per_second(row: Row, number: float | None) -> float | None:
    return number / row.time.value if row.time and number else None


def _tokens_per_second(row: Row) -> float | None:
    return row.examples_per_s * row.tokens if row.examples_per_s and row.tokens else None


def _per_example(record: Record) -> list[list[float]]:
    examples = record.examples or 1
    return [[stats.median(r) / examples] if r else [] for r in _timings(record)]


def _speed(row: Row) -> stats.Estimate | None:
    """A ratio of throughputs, also where two take steps of different sizes."""
    return stats.paired_ratio(row.baseline.per_example, row.per_example) if row.baseline else None


def _others(record: Record) -> float | None:
    told = [r.state.others for r in record.rounds if r.state.others is not None]
    return stats.median(told) if told else None


def memory_of(record: Record) -> float | None:
    """Its peak in bytes; None where it was not measured."""
    return _value(record, *MEMORY)


def _memory_relative(row: Row) -> float | None:
    reference = row.baseline.memory if row.baseline else None
    return row.memory / reference if row.memory is not None and reference else None
