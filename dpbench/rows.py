"""The figures of a record, ready to be shown: seconds, throughput, memory, and their ratios to a baseline.

A ratio is taken only between cells of one file and one workload, and speeds only round by round,
because only those were timed interleaved in one process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpbench import stats
from dpbench.coverage import NormMethod
from dpbench.records import MAX, Metric, Outcome, Record, Workload
from dpbench.results import Results
from dpbench.timed import SECONDS

MEMORY = ("peak_live", "peak_allocated")
"""The metric that is called memory: the first that a record has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell and its figures. A figure is None if it was not measured or the outcome is not ok."""

    file: str
    implementation: str
    workload: Workload
    batch: int | None
    """The physical batch that it ran at, which the workload does not say where its own is ``max``."""
    batch_is_max: bool
    outcome: Outcome
    reason: str
    parity_passed: bool | None
    parity_error: float | None
    coverage: float | None
    frozen: tuple[str, ...] = ()
    ghost: float | None = None
    instantiated: float | None = None
    vector: float | None = None
    generic: float | None = None
    loop: float | None = None
    rounds: int = 0
    outliers: int = 0
    scatter: float | None = None
    seconds: float | None = None
    seconds_low: float | None = None
    seconds_high: float | None = None
    examples_per_s: float | None = None
    tokens_per_s: float | None = None
    speed_relative: float | None = None
    speed_relative_low: float | None = None
    speed_relative_high: float | None = None
    speed_relative_smallest: float | None = None
    speed_relative_largest: float | None = None
    memory: float | None = None
    memory_relative: float | None = None
    process_peak: float | None = None
    resident: float | None = None
    parameters: int | None = None
    trainable_parameters: int | None = None
    tokens: float | None = None
    config: str | None = None
    started: str = ""

    @property
    def partial(self) -> bool:
        """Whether parameters were left out: then its figures are of less work than others'."""
        return self.outcome is not Outcome.REFUSED and self.coverage is not None and self.coverage < 1

    def flat(self) -> dict[str, Any]:
        """All of it by column name, the fields of the workload among them; keys are those of COLUMNS."""
        values = {
            **asdict(self.workload),
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "workload": self.workload.key(),
            "outcome": str(self.outcome),
            "frozen": ", ".join(self.frozen),
        }
        return {name: values[name] for name in COLUMNS}


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
    "optimizer": "sgd or adamw; used in a train step",
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
    "parameters": "number of parameters of the model",
    "trainable_parameters": "number of those that are trained",
    "tokens": "tokens per example; empty for models without tokens",
    "config": "where the model's configuration comes from",
    "started": "ISO 8601, UTC",
}
"""What each column means; also the order of the columns."""


def rows(results: Results | Iterable[Record], baseline: str = "nonprivate", file: str = "") -> list[Row]:
    """The rows of one file, or of records that were taken in one run, in their order."""
    if isinstance(results, Results):
        records, file = list(results.records), file or str(results.path)
    else:
        records = list(results)
    compared = {r.cell.workload: r for r in records if r.cell.implementation == baseline and _is_whole(r)}
    return [_row(r, compared.get(r.cell.workload), file) for r in records]


def _is_whole(record: Record) -> bool:
    """Whether others may be compared with it: it is ok, and trained everything."""
    return record.outcome is Outcome.OK and (record.coverage is None or record.coverage.share == 1)


def _row(record: Record, baseline: Record | None, file: str) -> Row:
    workload, facts, parity = record.cell.workload, record.facts, record.parity
    coverage = record.coverage
    methods: dict[str, Any] = {str(m): coverage.by(m) if coverage else None for m in NormMethod}
    figures = _figures(record, baseline) if record.outcome is Outcome.OK else {}
    return Row(
        file=file,
        implementation=record.cell.implementation,
        workload=workload,
        batch=record.batch,
        batch_is_max=workload.batch == MAX,
        outcome=record.outcome,
        reason=record.reason,
        parity_passed=parity.passed if parity else None,
        parity_error=parity.error if parity else None,
        coverage=0.0 if record.outcome is Outcome.REFUSED else coverage.share if coverage else None,
        frozen=tuple(coverage.frozen) if coverage else (),
        **methods,
        parameters=facts.get("parameters"),
        trainable_parameters=facts.get("trainable"),
        tokens=facts.get("tokens"),
        config=facts.get("source"),
        started=record.started,
        **figures,
    )


def _figures(record: Record, baseline: Record | None) -> dict[str, Any]:
    memory = memory_of(record)
    figures: dict[str, Any] = {
        "memory": memory,
        "process_peak": _value(record.metrics.get("peak_process")),
        "resident": _value(record.metrics.get("resident")),
    }
    if baseline is not None and memory is not None and (reference := memory_of(baseline)):
        figures["memory_relative"] = memory / reference
    metric = record.metrics.get(SECONDS)
    seconds = stats.typical(metric.samples) if metric else None
    if metric is None or seconds is None or not record.examples:
        return figures
    per_s = record.examples / seconds.value
    tokens = record.facts.get("tokens")
    figures |= {
        "rounds": seconds.rounds,
        "outliers": sum(len(stats.outliers(r)) for r in metric.samples),
        "scatter": stats.scatter(metric.samples),
        "seconds": seconds.value,
        "seconds_low": seconds.low,
        "seconds_high": seconds.high,
        "examples_per_s": per_s,
        "tokens_per_s": per_s * tokens if tokens else None,
    }
    ratio = stats.paired_ratio(_per_example(baseline), _per_example(record)) if baseline else None
    if ratio is not None:
        figures |= {
            "speed_relative": ratio.value,
            "speed_relative_low": ratio.low,
            "speed_relative_high": ratio.high,
            "speed_relative_smallest": ratio.smallest,
            "speed_relative_largest": ratio.largest,
        }
    return figures


def _per_example(record: Record) -> list[list[float]]:
    """Seconds by round: a ratio is one of throughputs, also where two take steps of different sizes."""
    metric = record.metrics.get(SECONDS)
    return [[s / record.examples for s in r] for r in metric.samples] if metric and record.examples else []


def memory_of(record: Record) -> float | None:
    """Its peak in bytes; None where it was not measured."""
    return next((_value(record.metrics[name]) for name in MEMORY if name in record.metrics), None)


def _value(metric: Metric | None) -> float | None:
    estimate = stats.typical(metric.samples) if metric else None
    return estimate.value if estimate else None
