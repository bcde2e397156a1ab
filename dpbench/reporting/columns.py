"""Text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines with their cells one below the other: ``left`` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(_placed(line, widths, left)).rstrip() for line in lines]


def _placed(line: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    return [
        cell.ljust(width) if i < left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
