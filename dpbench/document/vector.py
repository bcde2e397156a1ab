"""A chart as SVG that stands in a page: colours that follow light and dark, and ids that no other chart has."""

from __future__ import annotations

import re
from io import StringIO
from xml.etree import ElementTree

from dpbench.document.compact import compact
from dpbench.document.parts import Chart
from dpbench.document.text import legal
from dpbench.reporting.style import style

CSS_PIXELS = 96 / 72
"""In a point."""


def svg(chart: Chart) -> str:
    """The chart as an ``<svg>`` element without a background, the same text each time.

    A colour ``#222222`` becomes ``var(--c222222, #222222)``, so that a page can say what stands for it in the dark.
    """
    figure = chart.draw()
    drawn = StringIO()
    with style():
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(legal(drawn.getvalue()))
    for parent in root.iter():
        for child in list(parent):
            # matplotlib's style sheet would hold for the whole page; its metadata is of no use there.
            if _name(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _name(element.tag)
        attributes = {_name(name): _prefixed(_name(name), value, chart.id) for name, value in element.items()}
        element.attrib.clear()
        element.attrib.update(attributes)
    compact(root, chart.id)
    width, height = (float(root.get(side, "0").removesuffix("pt")) * CSS_PIXELS for side in ("width", "height"))
    root.attrib.update(
        {
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "font-family": "'DejaVu Sans', sans-serif",
            "role": "img",
            "aria-label": chart.alt or chart.caption,
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        }
    )
    return ElementTree.tostring(root, encoding="unicode")


def colours(text: str) -> set[str]:
    """Those of :func:`svg` that a page may replace."""
    return set(re.findall(r"var\(--c[0-9a-f]{6}, (#[0-9a-f]{6})\)", text))


def variable(colour: str) -> str:
    """A colour as CSS, which the page may replace."""
    return f"var(--c{colour[1:].lower()}, {colour.lower()})"


def _name(qualified: str) -> str:
    """Without its namespace: HTML knows that of an ``<svg>``."""
    return qualified.rpartition("}")[2]


def _prefixed(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href" and value.startswith("#"):
        return f"#{prefix}-{value[1:]}"
    if name == "style":
        value = re.sub(r"#[0-9a-fA-F]{6}\b", lambda colour: variable(colour.group()), value)
        value = value.replace("'DejaVu Sans'", "var(--sans, 'DejaVu Sans')")
    return value.replace("url(#", f"url(#{prefix}-")
