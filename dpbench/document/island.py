"""Records as JSON inside of a page: by column, and each value that repeats only once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpbench.document.parts import Taken

FIXED = ("source", "line", "implementation", "workload", "outcome")


def columns(records: Sequence[Taken]) -> list[dict[str, Any]]:
    """The records by column: ``name``, ``values``, and ``at``, which says for each record where its value stands.

    Without ``at`` the values are the records' own, in their order. A figure that a record has not is null.
    """
    names = dict.fromkeys(name for record in records for name in record.figures)
    fixed = [_column(name, [getattr(record, name) for record in records]) for name in FIXED]
    return fixed + [_column(name, [record.figures.get(name) for record in records]) for name in names]


def island(value: Any) -> str:
    """JSON that can stand inside of ``<script>``: nothing in it ends the element or opens a comment."""
    return _json(value).replace("<", "\\u003c")


def ranges(numbers: Iterable[int]) -> str:
    """``0-2,5`` for 0, 1, 2 and 5."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def _column(name: str, values: list[Any]) -> dict[str, Any]:
    # By their JSON, since 1, 1.0 and true are equal and not the same.
    places: dict[str, int] = {}
    at = [places.setdefault(_json(value), len(places)) for value in values]
    if len(places) > len(values) / 2:
        return {"name": name, "values": values}
    return {"name": name, "values": [json.loads(text) for text in places], "at": at}


def _json(value: Any) -> str:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """What JSON can hold; of numbers that are not finite, their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
