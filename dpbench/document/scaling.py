"""Throughput and memory as the batch, the sequence or the image grows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dpbench.document.drawing import MOST_PANELS
from dpbench.document.parts import Chart, Section
from dpbench.document.sources import Material
from dpbench.reporting import palette
from dpbench.reporting.panels import NAMES, Panel, panels_of
from dpbench.reporting.plots import QUANTITIES, SIZES, Quantity, draw

MOST_CHARTS = 4
"""Of one quantity against one size."""
MOST_TOGETHER = 8
"""Of all: a page of more is slow to open, and nobody looks at them."""


def section(material: Material) -> Section | None:
    """The charts; None where no size was varied."""
    charts: list[Chart] = []
    prose = [
        "A panel for each model and setting, a line for each implementation. A cross marks where one ran out of "
        "memory; where it has no figure for another reason, its line is interrupted."
    ]
    found = {size: panels_of(material.rows, size) for size in SIZES}
    kinds = [(size, quantity) for size in SIZES for quantity in QUANTITIES if _told(found[size], quantity)]
    room = MOST_PANELS * min(MOST_CHARTS, MOST_TOGETHER // max(len(kinds), 1))
    for size, quantity in kinds:
        told = _told(found[size], quantity)
        charts += _charts(material, told[:room], size, quantity)
        if len(told) > room:
            prose.append(
                f"Of {quantity.name} against {NAMES.get(size, size)} {len(told) - room} of {len(told)} panels are "
                "left out; -k narrows a report down to what is asked."
            )
    if not charts:
        return None
    return Section("scaling", "Against batch, sequence length and image size", tuple(prose), tuple(charts))


def _told(panels: Sequence[Panel], quantity: Quantity) -> list[Panel]:
    """Those with a figure in them."""
    return [p for p in panels if any(getattr(r, quantity.column) is not None for r in p.rows)]


def _charts(material: Material, panels: Sequence[Panel], size: str, quantity: Quantity) -> list[Chart]:
    parts = [panels[i : i + MOST_PANELS] for i in range(0, len(panels), MOST_PANELS)]
    name = f"{quantity.name}-vs-{size.replace('_', '-')}"
    charts = []
    for number, part in enumerate(parts, start=1):
        of = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        rows = [row for panel in part for row in panel.rows]
        who = ", ".join(palette.order({row.implementation for row in rows}))
        values = sorted({v for row in rows if isinstance(v := getattr(row.workload, size), int)})
        charts.append(
            Chart(
                id=f"{name}-{number}" if of else name,
                caption=f"{quantity.label[0].upper()}{quantity.label[1:]}, against {SIZES[size]}{of}",
                draw=partial(draw, part, size, quantity),
                alt=f"Lines of {who} over {NAMES.get(size, size)} = {', '.join(map(str, values))}; "
                f"{len(part)} {'panel' if len(part) == 1 else 'panels'}",
                sources=tuple(dict.fromkeys(row.file for row in rows)),
                records=material.places_of(rows),
            )
        )
    return charts
