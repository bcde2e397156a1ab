from dataclasses import dataclass
from typing import Literal

import pytest

from dpbench.decoding import decode
from dpbench.errors import DpbenchError


@dataclass
class Point:
    x: int | Literal["max"]
    y: float | None = None
    names: tuple[str, ...] = ()


def test_what_json_gives_becomes_the_type():
    assert decode(Point, {"x": 3, "y": 1, "names": ["a"]}, "point") == Point(3, 1.0, ("a",))
    assert decode(Point, {"x": "max", "y": None}, "point") == Point("max")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": "min"}, "point.x is 'min', expected int"),
        ({"x": None}, "point.x is None, expected int"),
        ({"x": 1, "y": "fast"}, "point.y is 'fast', expected float"),
        ({"x": 1, "names": [1]}, r"point.names\[0\] is 1, expected str"),
        ({"y": 1.0}, "point.x is missing, expected"),
        ({"x": 1, "z": 1}, "unknown field of point 'z'"),
        ([], r"point is \[\], expected Point"),
    ],
)
def test_what_is_not_of_the_type_is_said_with_its_place(value, message):
    with pytest.raises(DpbenchError, match=message):
        decode(Point, value, "point")
