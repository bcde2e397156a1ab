"""Text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], left: int = 1, text_last: bool = False) -> list[str]:
    """Lines with their cells one below the other: ``left`` columns to the left, the others to the right.

    ``text_last``: the last column is text, and to the left, too.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lefts = {*range(left), *([len(widths) - 1] if text_last else [])}
    return ["  ".join(_placed(line, widths, lefts)).rstrip() for line in lines]


def _placed(line: Sequence[str], widths: Sequence[int], lefts: set[int]) -> list[str]:
    return [
        cell.ljust(width) if i in lefts else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
