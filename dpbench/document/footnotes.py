"""Notes of the entries of one table, numbered in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterator


class Footnotes:
    """The same note has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, note: str) -> int:
        """Its number, from 1."""
        return self._numbers.setdefault(note, len(self._numbers) + 1)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Number and note."""
        return ((number, note) for note, number in self._numbers.items())
