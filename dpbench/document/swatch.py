"""How an implementation is drawn, as a small sign beside its name: its line and marker, as in every chart."""

from __future__ import annotations

from dpbench.document.vector import variable
from dpbench.reporting.palette import Look

DASHES = {"-": "", "--": "4 2.5", ":": "1.2 2"}
SIZE = 8
"""Of a marker, in CSS pixels."""
LETTERS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
"""SVG's, by matplotlib's codes of a path."""


def symbol(identifier: str, look: Look) -> str:
    """A group of SVG, 26 by 12 pixels around the origin, to be used by its id."""
    colour = variable(look.colour)
    dashes = f' stroke-dasharray="{DASHES[look.line]}"' if DASHES[look.line] else ""
    return (
        f'<g id="{identifier}">'
        f'<path d="M-13 0H13" style="stroke: {colour}; stroke-width: 1.6"{dashes}/>'
        f'<path d="{_outline(look.marker)}" style="fill: {colour}"/></g>'
    )


def _outline(marker: str) -> str:
    from matplotlib.markers import MarkerStyle

    style = MarkerStyle(marker)
    parts = []
    for points, code in style.get_path().transformed(style.get_transform()).iter_segments():
        # Upwards is less in SVG.
        numbers = [f"{value * (-SIZE if i % 2 else SIZE):.2f}" for i, value in enumerate(points)]
        parts.append(LETTERS[int(code)] + ("" if code == 79 else " ".join(numbers)))
    return "".join(parts)
