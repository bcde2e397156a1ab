"""What a gate lets pass: the table ``[tool.dpbench.gate]`` of a pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError

from dpbench.change import verdicts
from dpbench.errors import DpbenchError
from dpbench.records import Cell
from dpbench.selection import parse
from dpbench.slowdown import MIN_EFFECT
from dpbench.suitefile import dotted, mistaken

FILE = Path("pyproject.toml")
TABLE = "tool.dpbench.gate"

Share = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Names = Annotated[list[Annotated[str, Strict()]], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]


class Limits(BaseModel):
    """By how much each quantity may grow, as a share; None: as it is said elsewhere."""

    model_config = ConfigDict(extra="forbid")

    seconds: Share | None = None
    memory: Share | None = None
    flops: Share | None = None
    bytes: Share | None = None
    peak: Share | None = None


DEFAULT = Limits(seconds=MIN_EFFECT, memory=0.02, flops=0.0, bytes=0.0, peak=0.0)
"""What is counted may not grow at all; what is measured, by what measuring it twice may differ."""


class Selection(Limits):
    """Limits of the cells that match."""

    select: Annotated[str, Strict()]


class Rules(BaseModel):
    """All of it. Whatever became of a cell, and its coverage, may never be worse."""

    model_config = ConfigDict(extra="forbid")

    suite: Annotated[Names, Field(min_length=1)] = ["ci"]
    """Names or files."""
    base: Annotated[str, Strict()] | None = None
    """A git reference, or a results file."""
    rounds: Annotated[int, Strict(), Field(ge=1)] = 20
    """Of timings, where they are measured."""
    min_rounds: Annotated[int, Strict(), Field(ge=1)] = 6
    """A timing with fewer does not pass."""
    min_effect: Share = MIN_EFFECT
    on_inconclusive: Literal["warn", "fail"] = "warn"
    on_missing: Literal["fail", "warn"] = "fail"
    """Of a cell that the base's suite has, and this tree's has no more."""
    fail_on: Names = []
    """Verdicts that do not pass besides, such as ``faster``: then the base is out of date."""
    allow: Limits = Limits()
    selection: list[Selection] = []
    """The last that matches a cell and has the quantity counts."""

    def limit(self, cell: Cell, quantity: str) -> float:
        """By how much a quantity of a cell may grow."""
        own = [getattr(s, quantity) for s in self.selection if parse(s.select)(cell)]
        found = [v for v in (getattr(DEFAULT, quantity), getattr(self.allow, quantity), *own) if v is not None]
        return float(found[-1])


def rules(path: Path = FILE) -> Rules:
    """Those of a pyproject.toml; the usual ones where it has none.

    Raises:
        DpbenchError: with every mistake in them.
    """
    if not path.is_file():
        return Rules()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DpbenchError(f"{path} is not TOML: {error}") from None
    for key in TABLE.split("."):
        data = data.get(key, {}) if isinstance(data, dict) else {}
    where = f"[{TABLE}] of {path}"
    try:
        found = Rules.model_validate(data)
    except ValidationError as error:
        raise mistaken(where, [_mistake(dict(e)) for e in error.errors()]) from None
    mistakes = [
        f"{place}.seconds is {limits.seconds:g}, expected at least min_effect ({found.min_effect:g}), below which no "
        "difference is one: lower that, too"
        for place, limits in [("allow", found.allow), *((f"selection[{i}]", s) for i, s in enumerate(found.selection))]
        if limits.seconds is not None and limits.seconds < found.min_effect
    ]
    words: dict[str, Callable[[], object]] = {"fail_on": partial(verdicts, found.fail_on)}
    words |= {f"selection[{i}].select": partial(parse, s.select) for i, s in enumerate(found.selection)}
    for key, read in words.items():
        try:
            read()
        except DpbenchError as error:
            mistakes.append(f"{key}: {error}")
    if mistakes:
        raise mistaken(where, mistakes)
    return found


def _mistake(error: dict[str, Any]) -> str:
    place = tuple(p for p in error["loc"] if not str(p).startswith("function-"))
    key = dotted(place)
    if error["type"] == "extra_forbidden":
        kind = Selection if place[0] == "selection" else Limits if len(place) > 1 else Rules
        known = list(kind.model_fields)
        near = get_close_matches(str(place[-1]), known, n=3, cutoff=0.5)
        return f"{key} is unknown, " + (
            f"did you mean {' or '.join(near)}?" if near else f"expected {', '.join(known)}"
        )
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"{key or 'it'} is {error['input']!r:.60}, expected a table"
    if error["type"] == "missing":
        return f"{key} is missing"
    expected = error["msg"].removeprefix("Input should be ").replace("greater than or equal to", "at least")
    return f"{key} is {error['input']!r:.60}, expected {expected}"
