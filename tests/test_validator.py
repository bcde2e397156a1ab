import json
import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import core_schema

from dpbench.decoding import decode
from dpbench.errors import DpbenchError
from dpbench.validator import validator


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Point:
    x: int | Literal["max"]
    y: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    point: Point
    colour: Colour
    samples: tuple[tuple[float, ...], ...] = ()
    points: dict[str, Point] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    good: bool = True
    name: str | None = None


WHOLE = All(
    point=Point("max"),
    colour=Colour.RED,
    samples=((1.0, 2.5), ()),
    points={"a": Point(1, 2.0)},
    anything={"n": 1, "deep": [{"x": None}]},
    name="é\n",
)
TEXT = json.dumps(
    {
        "point": {"x": "max", "y": None},
        "colour": "red",
        "samples": [[1, 2.5], []],
        "points": {"a": {"x": 1, "y": 2}},
        "anything": {"n": 1, "deep": [{"x": None}]},
        "good": True,
        "name": "é\n",
    }
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types: 1 is not True, nor 1.0."""
    return repr(a) == repr(b)


def test_every_type_is_built():
    made = validator(All, {}).validate_json(TEXT)
    assert same(made, WHOLE)
    assert type(made.colour) is Colour


def test_fields_that_are_not_there_have_their_defaults():
    made = validator(All, {}).validate_json('{"point": {"x": 1}, "colour": "red"}')
    assert same(made, All(point=Point(1), colour=Colour.RED))
    other = validator(All, {}).validate_json('{"point": {"x": 1}, "colour": "red"}')
    assert made.points is not other.points


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["red", "max", "nan", "1", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "a"]), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in it, with every key or index of that."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [found for key in keys for found in [(value, key), *places(value[key])]]


@settings(max_examples=500)
@given(data=st.data(), new=anything)
def test_it_accepts_nothing_that_decoding_does_not_and_gives_the_same(data, new):
    value = json.loads(TEXT)
    container, key = data.draw(st.sampled_from(places(value)))
    match data.draw(st.sampled_from(["replace", "remove", "add"])):
        case "replace":
            container[key] = new
        case "remove":
            del container[key]
        case "add" if isinstance(container, dict):
            container["colour "] = new
    text = json.dumps(value)
    try:
        made = validator(All, {}).validate_json(text)
    except ValueError:
        return
    assert same(made, decode(All, json.loads(text), "all"))


@pytest.mark.parametrize(
    "text", ['{"x": 1, "x": 2}', '{"x": 2.0}', '{"x": true}', '{"x": 1, "y": NaN}', '{"x": 1, "y": 1e400}']
)
def test_oddities_of_json_are_no_other_value(text):
    try:
        made = validator(Point, {}).validate_json(text)
    except ValueError:
        return
    assert same(made, decode(Point, json.loads(text), "point"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_as_they_were(value):
    made = validator(Point, {}).validate_json(json.dumps({"x": 1, "y": value}))
    assert made.y == value
    assert math.copysign(1, made.y) == math.copysign(1, value)


def test_a_schema_may_be_given_and_a_name_that_is_no_field_is_left_out():
    shared = {"n": 1}
    default = core_schema.with_default_schema(core_schema.any_schema(), default_factory=lambda: shared)
    one = core_schema.literal_schema([1])
    check = validator(All, {"anything": default, "version": one})
    made = check.validate_json('{"point": {"x": 1}, "colour": "red", "version": 1}')
    assert made.anything is shared
    assert made == replace(All(point=Point(1), colour=Colour.RED), anything=shared)
    for text in ('{"point": {"x": 1}, "colour": "red", "version": 2}', '{"point": {"x": 1}, "colour": "red"}'):
        with pytest.raises(ValueError, match="version"):
            check.validate_json(text)


def test_what_it_rejects_decoding_tells_by_name():
    with pytest.raises(DpbenchError, match="unknown field of all 'colours'"):
        decode(All, {**json.loads(TEXT), "colours": 1}, "all")
