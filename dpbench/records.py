"""What a benchmark produces: one record for each cell, whatever became of it.

A *workload* is what is computed (model, batch size, T, precision, ...); a *cell* is one
implementation on one workload; a *record* is what happened when that cell was run. This module
knows nothing of torch, so that results can be read, compared and plotted without it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Literal

from dpbench.checksum import sealed, unsealed
from dpbench.coverage import Coverage
from dpbench.decoding import decode
from dpbench.errors import DpbenchError
from dpbench.state import State

SCHEMA = 4

ADDED_ONLY = 2
"""Since this schema there were only fields added: a record is one of today as it is."""

MAX: Final = "max"
"""The batch that is the largest that fits, for each implementation its own."""


class Outcome(StrEnum):
    """What became of a cell. Every cell of a suite ends in exactly one of these."""

    OK = "ok"
    WRONG = "wrong"
    """The gradient differs from the explicit per-example loop: no speed is reported."""
    REFUSED = "refused"
    """The implementation said, by name, that it does not support this workload."""
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    FAILED = "failed"

    @property
    def is_failure(self) -> bool:
        """Whether a run with this outcome exits 3; a refusal and running out of memory are results."""
        return self in (Outcome.WRONG, Outcome.TIMED_OUT, Outcome.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is computed. ``None`` leaves an axis to the model's own default."""

    model: str
    """``family:name(option=value,...)``, for example ``transformers:gpt2(tie_word_embeddings=false)``."""
    batch: int | Literal["max"]
    """B, the physical batch size, in examples; ``max``: each implementation's largest, which a run finds."""
    logical_batch: int | None = None
    """Examples of one step: as many physical batches as that needs, the last one smaller; None: one of them."""
    seq_len: int | None = None
    """T for text, in tokens."""
    image_size: int | None = None
    """Height and width, in pixels."""
    layers: int | None = None
    classes: int | None = None
    precision: str = "fp32"
    attention: str | None = None
    checkpointing: bool = False
    """Whether the activations of blocks are computed again in the backward."""
    loss_chunk: int | None = None
    """Tokens of an example whose logits and loss are computed at a time; None: all of them."""
    norm: str | None = None
    """``group`` replaces batch norm by group norm."""
    trainable: str = "all"
    step: str = "gradient"
    """``gradient``: forward, clip, sum. ``train``: noise, scaling and the optimizer as well."""
    optimizer: str = "sgd"
    max_norm: float = 1.0
    clip_function: str = "abadi"
    clip_style: str = "flat"
    device: str = "cpu"
    threads: int | None = None
    seed: int = 0

    @property
    def physical(self) -> int:
        """The batch as a number; raises DpbenchError where it is ``max``, which is not one workload's to know."""
        if isinstance(self.batch, int):
            return self.batch
        raise DpbenchError(
            "batch is 'max', expected a number here: dpbench run alone finds it. "
            "See: dpbench maxbatch, which tells the number for each implementation"
        )

    def key(self) -> str:
        """A short hash of the canonical workload, the same on every machine."""
        return digest(asdict(self))

    def label(self) -> str:
        """The axes that were set, for people: ``transformers:gpt2 B=8 T=128``."""
        names = {"batch": "B", "seq_len": "T", "image_size": "px"}
        parts = [self.model]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in names and value is not None:
                parts.append(f"{names[f.name]}={value}")
            elif f.name not in ("model", *names) and value != f.default:
                parts.append(f"{f.name}={value}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Cell:
    """One implementation on one workload."""

    implementation: str
    workload: Workload

    def key(self) -> str:
        """A short hash that names the cell in a results file."""
        return digest({"implementation": self.implementation, "workload": asdict(self.workload)})


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity with every raw sample that was taken."""

    unit: str
    samples: tuple[tuple[float, ...], ...]
    """One inner tuple per round, a fresh process each."""
    at: tuple[tuple[float, ...], ...] = ()
    """When each sample began, in seconds since its round did; empty for what is no timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One fresh process that timed, and what the machine was doing meanwhile."""

    started: float
    """Seconds since the epoch."""
    warm_up: int
    """Steps before the first that was timed."""
    settled: bool
    """Whether those had become steady before their time was up."""
    state: State = field(default_factory=State)


@dataclass(frozen=True, slots=True)
class Roofline:
    """Seconds of one step that follow from its trace and the speeds of the machine it was run on."""

    card: str
    """What that machine is called among cards: ``here`` where it was calibrated."""
    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What one step costs, counted in a trace of the real code: the same wherever it is taken, but for the roofline."""

    flops: int
    bytes: int
    """Read and written by all operators, where nothing stays in a cache from one to the next."""
    peak: int
    """Most bytes alive at once, above parameters, buffers and batch."""
    modules: dict[str, int] = field(default_factory=dict)
    """FLOPs by module of the paper, and of ``attention``, products between activations."""
    on: str = "trace"
    """``trace``: tensors of shapes without memory; ``real``: small batches of real ones, extrapolated."""
    roofline: Roofline | None = None
    """Of what the record's seconds are; None where the machine's speeds are not known, and of a logical batch."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How far the gradient lies from the explicit per-example loop."""

    passed: bool
    error: float
    """Largest relative error over the norms and every parameter's clipped sum."""
    tolerance: float
    precision: str
    """The precision of the check: ``float64`` where a copy of the model fits."""
    worst: str = ""
    """What differed most: a parameter's name or ``norms``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What happened to one cell."""

    cell: Cell
    outcome: Outcome
    reason: str = ""
    metrics: dict[str, Metric] = field(default_factory=dict)
    rounds: tuple[Round, ...] = ()
    """Those of the timings among the metrics, in their order."""
    traced: Traced | None = None
    parity: Parity | None = None
    coverage: Coverage | None = None
    """Which parameters were trained, and how their norms were found; None where that is not known."""
    largest: int | None = None
    """The batch that it ran at where the workload's is ``max``; None where there is none."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the model turned out to be: parameters, examples' tokens, where its configuration came from.

    One record of a workload that was traced, the first implementation's, also has ``layers``: [name, T, d, p] of every
    trained matrix in the order of the forward, T of all its uses.
    """
    environment: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    """Hash of the implementation's source."""
    command: str = ""
    started: str = ""
    """ISO 8601, UTC."""
    schema: int = SCHEMA

    @property
    def batch(self) -> int | None:
        """The physical batch that it ran at."""
        asked = self.cell.workload.batch
        return asked if isinstance(asked, int) else self.largest

    @property
    def examples(self) -> int | None:
        """How many one step takes."""
        return self.cell.workload.logical_batch or self.batch


def digest(value: Any) -> str:
    """Twelve hexadecimal digits of the SHA-256 of the canonical JSON of ``value``."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def to_json(record: Record, environment: Mapping[str, Any] | None = None) -> str:
    """One line of JSON that :func:`from_json` turns back into an equal record.

    ``environment``: that of the file it goes into, which is not said again.
    JSON has no numbers for what is not finite: they are written as ``"nan"``, ``"inf"``, ``"-inf"``.
    Its last key is a checksum of the rest.
    """
    value = asdict(record)
    for round_ in value["rounds"]:
        # Most of it is None on most machines, in every round.
        round_["state"] = {name: seen for name, seen in round_["state"].items() if seen is not None}
    if environment is not None and record.environment == environment:
        del value["environment"]
    return sealed(json.dumps(plain(value), separators=(",", ":"), allow_nan=False))


def from_json(text: str | bytes, environment: Mapping[str, Any] | None = None) -> Record:
    """Read what :func:`to_json` wrote, strictly; ``environment``: that of the file.

    Raises:
        DpbenchError: changed since, not JSON, a newer schema, a field that is unknown, missing or of another type.
    """
    try:
        value = json.loads(unsealed(text.encode() if isinstance(text, str) else text))
    except ValueError as error:
        raise DpbenchError(f"not a record of dpbench: {error}, expected one line of JSON") from None
    if isinstance(value, dict):
        check_schema(value.get("schema"))
        value = {"environment": environment or {}, **_of_today(value)}
    record: Record = decode(Record, value, "record")
    return record


def _of_today(value: dict[str, Any]) -> dict[str, Any]:
    """A record of an older schema as one of this; 2 lacked rounds, their times and traces, 3 rooflines and layers.

    The coverage of schema 1 was a share; of how many elements, the facts of the model say if they were known.
    """
    if value["schema"] >= ADDED_ONLY:
        return {**value, "schema": SCHEMA}
    share = decode(float | None, value.get("coverage"), "record.coverage")
    facts = value.get("facts")
    asked = facts.get("trainable") if isinstance(facts, dict) else None
    known = share is not None and isinstance(asked, int)
    coverage = {"asked": asked, "trained": round(share * asked)} if known else None
    return {**value, "schema": SCHEMA, "coverage": coverage}


def check_schema(schema: object) -> None:
    """Raise unless this dpbench can read results of ``schema``."""
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise DpbenchError(f"not written by dpbench: schema is {schema!r}, expected 1 to {SCHEMA}")
    if schema > SCHEMA:
        raise DpbenchError(
            f"written by a newer dpbench, schema {schema}; this reads up to {SCHEMA}; upgrade with: "
            "pip install -U dpsgd-bench"
        )


def plain(value: Any) -> Any:
    """Values as JSON has them: tuples as lists, numbers that are not finite as text."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
