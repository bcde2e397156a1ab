"""A paper whose figures are reproduced: what it printed, how that was read, and what is run beside it.

It holds facts and says which suites stand for them; nothing in it is code. :mod:`dpbench.papers` reads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator

BOUND = re.compile(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)")


def _printed(value: Any) -> float | str:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    if value == "oom" or (isinstance(value, str) and (bound := BOUND.fullmatch(value)) and float(bound[2])):
        return str(value)
    raise ValueError("expected a number above 0, 'oom', or a bound such as '>=40'")


Printed = Annotated[float | str, PlainValidator(_printed)]
"""A number, ``oom``, or a bound such as ``>=40``."""

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Quantity = Literal["throughput", "max_batch", "memory", "flops"]
UNITS: dict[str, str] = {"throughput": "examples/s", "max_batch": "examples", "memory": "GB", "flops": "FLOP"}
"""What a paper may print of an implementation; memory is all that a card holds during a step."""


class _Given(BaseModel):
    """Strict: a key that is misspelt is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Row(_Given):
    """One workload of a figure, and what was printed of it by quantity and implementation."""

    model: str
    T: int | None = None
    image: int | None = None
    B: int | None = None
    label: str = ""
    """What else tells it apart: a task, say."""
    relative_to: str = ""
    """The implementation whose values these are divided by; empty: they are as the unit says."""
    throughput: dict[str, Printed] = {}
    max_batch: dict[str, Printed] = {}
    memory: dict[str, Printed] = {}
    flops: dict[str, Printed] = {}
    read_to: dict[Quantity, Annotated[float, Field(gt=0)]] = {}
    """How far off a number may be as it was read, by quantity, in its unit: half of the last digit, say."""
    first_ghost_layer: int | None = None
    """The place of the first layer with a ghost norm, as the paper counts; of a figure of decisions."""

    @model_validator(mode="after")
    def _is_no_ratio_to_itself(self) -> Row:
        if any(self.relative_to in self.of(quantity) for quantity in UNITS):
            raise ValueError(
                f"relative_to is {self.relative_to!r}, which has a number here; expected ratios to another"
            )
        return self

    def of(self, quantity: str) -> Mapping[str, Printed]:
        """What was printed, by implementation."""
        found: Mapping[str, Printed] = getattr(self, quantity)
        return found


class Here(_Given):
    """The reduced size at which a suite is measured where its card is not: axes, and how long.

    An axis is one value for all, or a value for each of the suite's own: ``image_size = { "224" = 64 }``.
    """

    axes: dict[str, Any] = {}
    rounds: int = 3
    budget_s: float = 0.2
    timeout_s: float = 300.0
    memory: str | None = None
    left_out: str = ""
    """Cells that are not measured there, as ``-k`` selects them."""
    why: str = ""
    """Why they are not."""

    @model_validator(mode="after")
    def _reasoned(self) -> Here:
        if bool(self.left_out) != bool(self.why):
            raise ValueError("left_out and why go together: what is left out is said with its reason")
        return self


class Run(_Given):
    """One suite that gives values for quantities of a figure."""

    suite: str
    select: str = ""
    """Those of its cells that belong here, as ``-k`` selects them."""
    quantities: tuple[Quantity, ...]
    here: Here = Here()


class Reason(_Given):
    """Why our numbers differ from the printed ones."""

    implementation: str = "*"
    """A glob, as the next two are."""
    model: str = "*"
    quantity: str = "*"
    T: tuple[int, ...] = ()
    """The lengths and image sizes that it is for; empty: all."""
    image: tuple[int, ...] = ()
    of: Literal["absolute", "ratio"] | None = None
    """Whether of values, or of their ratios; None: of both."""
    sure: Literal["found", "in part", "consistent", "open"]
    """An experiment or a calculation explains the number, or a part of it; it fits the direction, and was not tested;
    not explained."""
    says: str
    evidence: str = ""
    """A command or a calculation that shows it."""


class Term(_Given):
    """What a paper says that something costs: ``BTpd`` times BTpd, and ``BTTpd`` times BT^2(p + d)."""

    of: str
    """An implementation, or ``module 3``."""
    BTpd: float = 0.0
    BTTpd: float = 0.0
    Bpd: float = 0.0

    def of_layer(self, T: int, d: int, p: int) -> float:
        """In multiples of BTpd."""
        return self.BTpd + self.BTTpd * T * (p + d) / (p * d) + self.Bpd / T


class Figure(_Given):
    """One table or chart of a paper, or one that it could have had."""

    id: Id
    title: str
    kind: Literal["cost", "complexity", "decisions"] = "cost"
    printed: str = ""
    """Where: a table, a figure, a sentence; empty: nothing was printed."""
    read: str = ""
    """How the numbers were read: text, table, numbers on bars, heights of bars."""
    card: str = "A100-40GB"
    precision: str = ""
    """What is known of it; likewise the next three."""
    attention: str = ""
    optimizer: str = ""
    step: str = ""
    notes: str = ""
    run: tuple[Run, ...] = ()
    row: tuple[Row, ...] = ()
    term: tuple[Term, ...] = ()
    reason: tuple[Reason, ...] = ()

    @model_validator(mode="after")
    def _has_provenance(self) -> Figure:
        if (self.row or self.term) and not (self.printed and self.read):
            raise ValueError("printed and read are needed beside numbers: where they stand, and how they were read")
        return self

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> Figure:
        # What another kind of figure has would not be shown.
        costs = any(row.of(quantity) for row in self.row for quantity in UNITS)
        places = any(row.first_ghost_layer is not None for row in self.row)
        for there, what, kind in (
            (costs, "numbers of implementations", "cost"),
            (self.term, "terms", "complexity"),
            (places, "first_ghost_layer", "decisions"),
        ):
            if there and self.kind != kind:
                raise ValueError(f"{what} in a figure of kind {self.kind!r}, expected kind = {kind!r}")
        return self

    @property
    def numbers(self) -> int:
        """How many were printed."""
        cells = sum(len(row.of(quantity)) for row in self.row for quantity in UNITS)
        return cells + sum(row.first_ghost_layer is not None for row in self.row) + len(self.term)


class Paper(_Given):
    """A paper and its figures."""

    id: Id
    citation: str
    url: str = ""
    figure: tuple[Figure, ...] = Field(min_length=1)
