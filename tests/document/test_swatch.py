import re
from xml.etree import ElementTree

import pytest

from dpbench.document.swatch import symbol
from dpbench.reporting.palette import KNOWN, Look, look


@pytest.mark.parametrize("name", [*KNOWN, "a stranger"])
def test_a_sign_has_the_colour_and_stays_within_its_box(name):
    line, marker = ElementTree.fromstring(symbol("x", look(name)))
    assert look(name).colour.lower() in line.get("style")
    assert look(name).colour.lower() in marker.get("style")
    numbers = [float(v) for v in re.findall(r"-?\d+\.\d+", marker.get("d"))]
    assert len(numbers) >= 6
    assert max(map(abs, numbers)) <= 6


def test_a_dashed_line_is_dashed():
    assert "dasharray" not in symbol("x", Look("#000000", "o"))
    assert "dasharray" in symbol("x", Look("#000000", "o", "--"))


def test_a_triangle_that_points_upwards_points_upwards():
    def heights(marker):
        d = ElementTree.fromstring(symbol("x", Look("#000000", marker)))[1].get("d")
        return [round(float(y), 1) for _, y in re.findall(r"(-?\d+\.\d+) (-?\d+\.\d+)", d)]

    up, down = heights("^"), heights("v")
    assert sorted(up)[:2] != sorted(up)[:1] * 2  # one point is highest, and upwards is less in SVG
    assert down == [-y for y in up]
