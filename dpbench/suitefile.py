"""What may be written in a suite, and every mistake in one at once, each with its key.

The axes are the fields of :class:`dpbench.records.Workload`, so that a field added there can be
written in a suite at once. An axis is one value or a list; the word ``default`` leaves an axis that
has no value of its own to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_type_hints

from annotated_types import Ge, Gt, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    WrapValidator,
    create_model,
)

from dpbench.errors import DpbenchError
from dpbench.records import MAX, Workload
from dpbench.sizes import EXPECTED, bytes_of

CHOICES = {
    "precision": ("fp32", "tf32", "bf16", "amp-bf16"),
    "attention": ("eager", "sdpa"),
    "norm": ("group",),
    "step": ("gradient", "train"),
    "optimizer": ("sgd", "adamw", "adamw_loop"),
    "clip_function": ("abadi", "automatic", "normalize"),
}
"""The axes of which every value is known here; the others are checked where they are used."""

Measure = Literal["traced", "memory", "seconds"]
"""What can be taken of a cell, beside the check of its gradient, which always is."""
MEASURED: tuple[Measure, ...] = ("memory", "seconds")
"""What is taken where nothing is said."""

WORDS = {"batch": MAX}
"""What an axis of numbers takes besides numbers."""

AXES = ("implementation", *(f.name for f in fields(Workload)))


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _or_default(value: Any) -> Any:
    return None if value == "default" else value


def _size(text: str) -> str:
    try:
        bytes_of(text)
    except DpbenchError:
        raise ValueError(EXPECTED) from None
    return text


def _values(name: str, annotation: Any, patterns: bool) -> Any:
    """The type of one axis: a list of what the field of a workload takes, or of patterns for it."""
    kinds = get_args(annotation) or (annotation,)
    kind = kinds[0]
    item: Any = Annotated[kind, Strict()]
    if kind is str and name in CHOICES and not patterns:
        item = Literal[CHOICES[name]]
    elif kind is str:
        item = Annotated[str, Strict(), MinLen(1)]
    elif kind is bool:
        item = Annotated[bool, Strict()]
    elif not patterns:
        item = Annotated[kind, Strict(), Gt(0) if kind is float else Ge(0 if name == "seed" else 1)]
    if name in WORDS:
        item = Annotated[item, WrapValidator(lambda value, number: value if value == WORDS[name] else number(value))]
    if NoneType in kinds:
        item = Annotated[item | None, BeforeValidator(_or_default)]
    return Annotated[list[item], BeforeValidator(_as_list), MinLen(1)]


def _block(name: str, patterns: bool = False) -> type[BaseModel]:
    hints = {"implementation": str, **get_type_hints(Workload)}
    types: dict[str, Any] = {axis: (_values(axis, hints[axis], patterns), None) for axis in AXES}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **types)


Axes = _block("Axes")
Patterns = _block("Patterns", patterns=True)


class SuiteFile(BaseModel):
    """A suite as it is written."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Strict()] = ""
    description: Annotated[str, Strict()] = ""
    rounds: Annotated[int, Strict(), Ge(1)] = 3
    """Fresh processes; 6 or more give intervals."""
    budget_s: Annotated[float, Strict(), Gt(0)] = 1.0
    """Seconds of timing per implementation and round."""
    timeout_s: Annotated[float, Strict(), Gt(0)] = 600.0
    """Seconds after which one cell is given up."""
    measure: Annotated[list[Measure], MinLen(1)] = list(MEASURED)
    """What is taken of each cell, beside the check of its gradient."""
    memory: Annotated[str, Strict(), AfterValidator(_size)] | None = None
    """What a step may take where the batch is ``max``, such as ``40GB``; on CUDA the card's if it is not given."""
    axes: Axes = Field(default_factory=Axes)  # type: ignore[valid-type]
    models: list[Axes] = []  # type: ignore[valid-type]
    include: list[Axes] = []  # type: ignore[valid-type]
    exclude: list[Patterns] = []  # type: ignore[valid-type]


Spell = Callable[[tuple[int | str, ...]], str]
"""How a place in a suite is called in a message."""


def dotted(place: tuple[int | str, ...]) -> str:
    """``models[0].batch`` for ("models", 0, "batch")."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def validate(data: Mapping[str, Any], where: str, spell: Spell = dotted) -> SuiteFile:
    """``data`` as a suite.

    Raises:
        DpbenchError: with every mistake on a line of its own: its key, what was got, what was expected.
    """
    found = None
    mistakes: list[str] = []
    try:
        found = SuiteFile.model_validate(data)
    except ValidationError as error:
        mistakes += [_mistake(dict(e), data, spell) for e in error.errors()]
    mistakes += _incomplete(data, spell)
    if mistakes or found is None:
        raise mistaken(where, mistakes)
    return found


def mistaken(where: str, mistakes: list[str]) -> DpbenchError:
    """One error for all mistakes of ``where``."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return DpbenchError("\n  ".join([f"{where}: {count}", *mistakes]))


def _incomplete(data: Mapping[str, Any], spell: Spell) -> list[str]:
    """What is missing from the blocks taken together, which no single block can say."""

    def blocks(name: str) -> list[Mapping[str, Any]]:
        value = data.get(name, [])
        return [b for b in value if isinstance(b, dict)] if isinstance(value, list) else []

    axes = data.get("axes", {})
    shared = axes if isinstance(axes, dict) else {}
    mistakes = []
    if "model" not in shared and "models" not in data and "include" not in data:
        mistakes.append(f"{spell(('axes', 'model'))} is missing, expected a model such as transformers:gpt2")
    if "model" in shared and "batch" not in shared:
        mistakes.append(f"{spell(('axes', 'batch'))} is missing, expected at least one batch size")
    for name, inherited in (("models", {k: v for k, v in shared.items() if k != "model"}), ("include", {})):
        for i, block in enumerate(blocks(name)):
            for axis in ("model", "batch"):
                if axis not in block and axis not in inherited:
                    also = " here or in [axes]" if name == "models" and axis == "batch" else ""
                    mistakes.append(f"{spell((name, i, axis))} is missing, expected a value{also}")
    for i, block in enumerate(blocks("exclude")):
        if not block:
            mistakes.append(f"{spell(('exclude', i))} is empty and would match everything, expected a key")
    return mistakes


def _mistake(error: dict[str, Any], data: Mapping[str, Any], spell: Spell) -> str:
    place = tuple(error["loc"])
    if len(place) > 1 and isinstance(place[-1], int):
        outer: Any = data
        for part in place[:-1]:
            outer = outer[part]
        if not isinstance(outer, list):
            place = place[:-1]
    key = spell(place)
    if error["type"] == "extra_forbidden":
        known = list(SuiteFile.model_fields) if len(place) == 1 else list(AXES)
        near = get_close_matches(str(place[-1]), known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(known)}"
        return f"{key} is unknown, {hint}"
    expected = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    expected = expected.replace("a valid list", "a list of blocks").replace("greater than or equal to", "at least")
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        expected = "a table of axes"
    if error["type"] == "too_short":
        expected = "at least one value"
    if error["type"] == "int_type" and (word := next((WORDS[p] for p in place if p in WORDS), None)):
        expected += f" or {word!r}"
    if error["type"] == "bool_type":
        expected = "true or false"
    if error["type"] == "string_too_short":
        expected = "a name"
    return f"{key} is {error['input']!r:.60}, expected {expected}"
