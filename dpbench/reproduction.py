"""What came of reproducing figures: every number as printed, as predicted, and as measured here. No torch.

A reproduction is one JSON file, ``reproduction.json``, beside the results that were measured for it.
"""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from dpbench.decoding import decode
from dpbench.errors import DpbenchError
from dpbench.paper import BOUND
from dpbench.records import plain

FILE = "reproduction.json"
SCHEMA = 2
FAR = 0.15
"""A difference above which a reason is due."""
BLURRED = 0.10
"""An error of reading, of what was read, above which nothing is held against it."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or a word in its place: ``oom``, ``>=40``, ``refused: why``; neither: nothing is said."""

    value: float | None = None
    word: str = ""
    low: float | None = None
    """Its 95 % interval, where there is one."""
    high: float | None = None

    def __bool__(self) -> bool:
        return self.value is not None or bool(self.word)

    @property
    def error(self) -> float:
        """Half its interval, relative to it; 0 where there is none."""
        return (
            0.0 if not self.value or self.low is None or self.high is None else (self.high - self.low) / 2 / self.value
        )


OOM = Number(word="oom")


@dataclass(frozen=True, slots=True)
class Three:
    """The three columns."""

    published: Number = Number()
    predicted: Number = Number()
    measured: Number = Number()
    reason: str = ""
    """Why predicted and published are far apart, where they are."""
    sure: str = ""
    """How sure that is: found, in part, consistent or open; more than one where reasons are several."""

    @property
    def off(self) -> float | None:
        """Predicted over published, less one; see :func:`off`."""
        return off(self.predicted, self.published)

    @property
    def blurred(self) -> bool:
        """Whether what was published could not be read to 10 %, so that it is not scored."""
        return self.published.error > BLURRED

    @property
    def far(self) -> bool:
        """Whether a reason is due: over FAR apart, and by more than an error of reading."""
        low, high, ours = self.published.low, self.published.high, self.predicted.value
        read_so = low is not None and high is not None and ours is not None and low <= ours <= high
        return self.off is not None and abs(self.off) > FAR and not read_so


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One implementation in one row of a figure, by one quantity."""

    row: str
    """The workload at full size, for people."""
    model: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    """B, T and px of it, where it has them."""
    quantity: str
    unit: str
    implementation: str
    absolute: Three = Three()
    ratio: Three = Three()
    """To ``relative_to``, on the same workload."""
    relative_to: str = "nonprivate"
    expected_here: Number = Number()
    """The ratio that is predicted at the size measured here."""
    at: str = ""
    """That size, and the memory that it was given; empty: the same."""
    file: str = ""
    """Name of the results file that what was measured is taken of."""
    cell: str = ""
    """The workload there, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced:
    """One figure."""

    id: str
    title: str
    kind: str
    printed: str
    read: str
    known: dict[str, str]
    """What is known of precision, attention, optimizer and step there, and the notes."""
    card: str
    values: tuple[Value, ...]
    left_out: tuple[str, ...] = ()
    """What was not measured, and why."""
    files: tuple[str, ...] = ()
    """Results of what was measured, beside the reproduction's own file."""
    commands: tuple[str, ...] = ()
    """That do the same by themselves."""
    layers: dict[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    """By model and size: name, T, d, p of every trained matrix."""
    seconds: float = 0.0
    """That it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A paper that figures come from."""

    id: str
    citation: str
    url: str = ""
    file: str = ""
    """Where its figures stand, of a paper that is found by being named alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """All figures of one run of ``dpbench reproduce``."""

    command: str
    started: str
    """ISO 8601, UTC."""
    device: str | None
    """Where suites are measured at full size; None: on the CPU, at their reduced size."""
    environment: dict[str, Any]
    papers: tuple[Cited, ...]
    figures: tuple[Reproduced, ...] = ()
    asked: tuple[str, ...] = ()
    """The ids of all figures that were asked for."""
    card: str | None = None
    """What predictions are for; None: the card of each figure."""
    measured: bool = True
    """Whether anything is run."""
    given: dict[str, str] = field(default_factory=dict)
    """What each figure and its suites said, by the figure's id, as a hash."""
    schema: int = SCHEMA

    def with_figure(self, figure: Reproduced) -> Reproduction:
        """One more, in place of an earlier one of that id."""
        return replace(self, figures=(*(f for f in self.figures if f.id != figure.id), figure))


@dataclass(frozen=True, slots=True)
class Share:
    """How many published numbers a prediction comes near to."""

    compared: int
    within_10: int
    within_25: int


def share(differences: Iterable[float]) -> Share:
    """Of all of them."""
    sizes = [abs(d) for d in differences]
    return Share(len(sizes), sum(s <= 0.10 for s in sizes), sum(s <= 0.25 for s in sizes))


def scored(values: Iterable[Value], of: Callable[[Value], Three]) -> list[float]:
    """How far predictions are from printed numbers that were read to 10 %: the median where one was printed often.

    Words (out of memory, bounds) are no numbers; a workload that was printed several times counts once.
    """
    found: dict[object, list[float]] = {}
    for value in values:
        three = of(value)
        if three.published.value is not None and three.off is not None and not three.blurred:
            sizes = tuple(sorted(value.sizes.items()))
            key = (value.model, sizes, value.quantity, value.implementation, value.relative_to)
            found.setdefault(key, []).append(three.off)
    return [median(some) for some in found.values()]


def off(ours: Number, theirs: Number) -> float | None:
    """Ours over theirs, less one; 0 where both ran out of memory, or a bound holds; None: not comparable."""
    if not ours or not theirs:
        return None
    bound = BOUND.fullmatch(theirs.word)
    if "oom" in (ours.word, theirs.word):
        # One ran, the other did not: infinitely far, if that is what they say.
        ran = bound or ours.value is not None or theirs.value is not None
        return 0.0 if ours.word == theirs.word else math.inf if ran else None
    if ours.value is None:
        return None
    if bound:
        limit = float(bound[2])
        holds = ours.value >= limit if bound[1].startswith(">") else ours.value <= limit
        return 0.0 if holds else ours.value / limit - 1
    return ours.value / theirs.value - 1 if theirs.value else None


def how_to_go_on(directory: Path) -> str:
    """What to do where a reproduction was broken off."""
    return f"go on with: dpbench reproduce --resume {shlex.quote(str(directory))}"


def write(reproduction: Reproduction, directory: Path) -> Path:
    """Whole or not at all."""
    path = directory / FILE
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        fresh.write_text(json.dumps(plain(asdict(reproduction)), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise DpbenchError(f"cannot write {path}: {error.strerror}; {how_to_go_on(directory)}") from None
    return path


def read(path: Path) -> Reproduction:
    """The reproduction in a file, or in a directory.

    Raises:
        DpbenchError: not there, or not one.
    """
    path = path / FILE if path.is_dir() else path
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DpbenchError(f"cannot read {path}: {error.strerror}; expected what dpbench reproduce wrote") from None
    except ValueError as error:
        raise DpbenchError(f"{path} is not JSON ({error}); expected what dpbench reproduce wrote") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        got = value.get("schema") if isinstance(value, dict) else value
        raise DpbenchError(f"{path}: schema is {got!r:.40}, expected {SCHEMA}; was it written by another dpbench?")
    found: Reproduction = decode(Reproduction, value, "reproduction")
    return found
