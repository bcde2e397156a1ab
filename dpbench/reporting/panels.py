"""Small multiples: which records share a panel, what it is called and where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import wrap
from typing import Any

from dpbench.records import MAX, Workload
from dpbench.rows import Row
from dpbench.selection import SHORT

NAMES = {axis: short for short, axis in SHORT.items()}
MAX_COLUMNS = 4
WIDTH = 36
"""Characters of a title that fit over a panel."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What one small chart shows: rows that differ in the size and the implementation only."""

    title: str
    rows: tuple[Row, ...]

    @property
    def model(self) -> str:
        """The model, which all rows have in common."""
        return self.rows[0].workload.model


def panels_of(rows: Iterable[Row], size: str) -> list[Panel]:
    """Rows by everything but ``size``, where there are two sizes to compare; titled by what differs.

    The largest batch that fits is another for each implementation, and no point of an axis.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    others = [f.name for f in fields(Workload) if f.name != size]
    for row in (r for r in rows if getattr(r.workload, size) != MAX):
        key = (row.file, *(getattr(row.workload, name) for name in others))
        groups.setdefault(key, []).append(row)
    groups = {k: g for k, g in groups.items() if len({getattr(r.workload, size) for r in g} - {None}) > 1}
    varying = [i for i in range(len(others) + 1) if len({k[i] for k in groups}) > 1]
    models = {group[0].workload.model for group in groups.values()}
    panels = []
    for key, group in groups.items():
        parts = []
        for i in varying:
            if i == 0:
                parts.append(Path(str(key[0])).stem)
            elif others[i - 1] != "model" and key[i] is not None:
                parts.append(f"{NAMES.get(others[i - 1], others[i - 1])}={key[i]}")
        model = group[0].workload.model
        name = model.partition("(")[0]
        # A model's options are long: they are shown where a name alone would not tell two models apart.
        shown = model if len({m for m in models if m.partition("(")[0] == name}) > 1 else name
        lines = [*wrap(shown, WIDTH), *wrap("  ".join(parts), WIDTH)]
        panels.append(Panel("\n".join(lines), tuple(group)))
    return panels


def places_of(panels: Sequence[Panel]) -> list[tuple[int, int]]:
    """Line and column of each panel: a line for each model if that leaves few gaps, else in turn."""
    models = [panel.model for panel in panels]
    distinct = list(dict.fromkeys(models))
    most = max(models.count(m) for m in distinct)
    if most <= MAX_COLUMNS and len(panels) >= 0.75 * most * len(distinct) and most > 1:
        return [(distinct.index(m), models[:i].count(m)) for i, m in enumerate(models)]
    columns = 3 if len(panels) in (5, 6, 9) else MAX_COLUMNS
    return [divmod(i, columns) for i in range(len(panels))]


def setting_of(panels: Sequence[Panel]) -> str:
    """What all panels have in common and a reader has to know."""
    first = panels[0].rows[0].workload
    words = [f"{first.step} step"]
    for name in ("precision", "device", "threads", "layers", "trainable", "clip_style", "optimizer"):
        values = {getattr(r.workload, name) for panel in panels for r in panel.rows}
        value = values.pop()
        if not values and value not in (None, "all", "flat", "sgd"):
            words.append(f"{name} {value}" if name not in ("precision", "device") else str(value))
    return ", ".join(words)
